#include "cupy/cupy_allocator.hpp"

#include <stdexcept>
#include <string>

#include "python/allocator_values.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

using allocator::CachingAllocator;
using python::GilRelease;
using record::CallSite;

CupyAllocator::CupyAllocator(nb::handle memory_module, CupyState state, nb::callable open_device,
                             nb::callable out_of_memory)
    : pointer_(memory_module, this, &take_allocated, &free_callback),
      state_(std::move(state)),
      open_device_(std::move(open_device)),
      out_of_memory_(std::move(out_of_memory)) {}

CachingAllocator& CupyAllocator::allocator(int device) {
    if (device < 0 || device >= record::Session::max_devices) {
        throw std::out_of_range("device " + std::to_string(device) + " is not one of the first " +
                                std::to_string(record::Session::max_devices));
    }
    CachingAllocator*& known = allocators_[static_cast<std::size_t>(device)];
    if (known == nullptr) {
        nb::object opened = open_device_(device);
        known = nb::cast<CachingAllocator*>(opened);
        // Both are kept forever, because their memory may be freed at any later time.
        opened.release();
        nb::find(this).release();
    }
    return *known;
}

CallSite CupyAllocator::call_site() const noexcept {
    if (session_ == nullptr) {
        return {.framework = record::Framework::cupy};
    }
    return session_->call_site(stacks_, record::Framework::cupy);
}

PyObject* CupyAllocator::malloc(PyObject* size) noexcept {
    try {
        const std::size_t bytes = PyLong_AsSize_t(size);
        if (bytes == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
            const bool is_integer = PyLong_Check(size) != 0;
            PyErr_Clear();
            PyErr_Format(is_integer ? PyExc_OverflowError : PyExc_TypeError,
                         is_integer ? "size must be from 0 to 2**64 - 1 bytes, got %R"
                                    : "size must be a number of bytes, got %R",
                         size);
            return nullptr;
        }
        return malloc_on(state_.device(), bytes);
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

PyObject* CupyAllocator::malloc_on(int device, std::size_t size) {
    if (abandoned_.load(std::memory_order_relaxed)) {
        throw std::runtime_error("CUDA cannot be used in a forked child process.");
    }
    CachingAllocator& owner = allocator(device);
    std::uint64_t address = 0;
    if (size != 0) {
        const CallSite site = call_site();
        const device::StreamHandle stream = state_.stream(device);
        if (const auto cached = owner.try_allocate(size, stream, site)) {
            address = *cached;
        } else {
            try {
                const GilRelease unlocked;
                address = owner.allocate(size, stream, site, true);
            } catch (const allocator::OutOfMemory& error) {
                const nb::object type =
                    nb::module_::import_("gpuviz._core").attr("OutOfMemoryError");
                const nb::object exception = out_of_memory_(python::to_python(error, type));
                PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                                exception.ptr());
                return nullptr;
            }
        }
    }
    allocated_ = address;
    PyObject* pointer = pointer_.make(address, size, device);
    if (pointer == nullptr && address != 0) {
        free(address, device);
    }
    return pointer;
}

void* CupyAllocator::take_allocated(void* self, std::size_t /*size*/, int /*device*/) {
    return reinterpret_cast<void*>(static_cast<CupyAllocator*>(self)->allocated_);
}

void CupyAllocator::free_callback(void* self, void* address, int device) noexcept {
    auto& allocator = *static_cast<CupyAllocator*>(self);
    if (allocator.abandoned_.load(std::memory_order_relaxed)) {
        return;
    }
    try {
        allocator.free(reinterpret_cast<std::uint64_t>(address), device);
    } catch (const std::exception&) {
        ++allocator.lost_frees_;
    }
}

void CupyAllocator::free(std::uint64_t address, int device) {
    CachingAllocator& owner = *allocators_[static_cast<std::size_t>(device)];
    const CallSite site = call_site();
    if (!owner.try_free(address, site)) {
        const GilRelease unlocked;
        owner.free(address, site);
    }
}

void CupyAllocator::empty_cache(CachingAllocator& allocator) const {
    const CallSite site = call_site();
    const GilRelease unlocked;
    allocator.empty_cache(site);
}

void CupyAllocator::set_session(record::Session* session, bool stacks) noexcept {
    session_ = session;
    stacks_ = stacks;
}

}  // namespace gpuviz::cupy
