#include "cupy/pinned_allocator.hpp"

#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "allocator/caching_allocator.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

using allocator::CachingAllocator;
using allocator::HostAllocator;
using device::StreamHandle;
using python::GilRelease;
using record::CallSite;

namespace {

constexpr StreamHandle kLegacyStream = 0;

// Nothing, with a Python exception set, for anything but a number of bytes.
std::optional<std::size_t> bytes_of(PyObject* size) {
    const nb::object index = nb::steal(PyNumber_Index(size));
    if (!index.is_valid()) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "size must be a number of bytes, got %s",
                     nb::cast<std::string>(nb::inst_name(size)).c_str());
        return std::nullopt;
    }
    const std::size_t bytes = PyLong_AsSize_t(index.ptr());
    if (bytes == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "size must be a number of bytes from 0 to 2**64 - 1, got %R",
                     size);
        return std::nullopt;
    }
    return bytes;
}

}  // namespace

PinnedMemory::~PinnedMemory() {
    if (address_ != 0) {
        allocator_.free(address_);
    }
}

PinnedAllocator::PinnedAllocator(nb::object pointer_type, CupyState state, nb::callable open_host,
                                 nb::callable open_device, nb::callable refused)
    : pointer_(std::move(pointer_type)),
      state_(std::move(state)),
      open_host_(std::move(open_host)),
      open_device_(std::move(open_device)),
      refused_(std::move(refused)) {}

HostAllocator& PinnedAllocator::host_allocator(int device) {
    if (host_ == nullptr) {
        nb::object opened = open_host_(device);
        host_ = nb::cast<HostAllocator*>(opened);
        // Both are kept forever, because their memory may be freed at any later time.
        opened.release();
        nb::find(this).release();
    }
    return *host_;
}

device::Device& PinnedAllocator::device_at(int ordinal) {
    if (ordinal < 0 || ordinal >= record::Session::max_devices) {
        throw std::out_of_range("device " + std::to_string(ordinal) + " is not one of the first " +
                                std::to_string(record::Session::max_devices));
    }
    device::Device*& known = devices_[static_cast<std::size_t>(ordinal)];
    if (known == nullptr) {
        nb::object opened = open_device_(ordinal);
        known = &nb::cast<CachingAllocator&>(opened).device();
        opened.release();
    }
    return *known;
}

CallSite PinnedAllocator::call_site() const noexcept {
    if (session_ == nullptr) {
        return {};
    }
    return session_->call_site(stacks_);
}

PyObject* PinnedAllocator::malloc(PyObject* size) noexcept {
    try {
        const std::optional<std::size_t> bytes = bytes_of(size);
        return bytes ? malloc_bytes(*bytes) : nullptr;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

PyObject* PinnedAllocator::malloc_bytes(std::size_t size) {
    if (abandoned_.load(std::memory_order_relaxed)) {
        throw std::runtime_error("CUDA cannot be used in a forked child process.");
    }
    HostAllocator& owner = host_allocator(state_.device());
    const CallSite site = call_site();
    std::uint64_t address = 0;
    if (const auto cached = owner.try_allocate(size, site)) {
        address = *cached;
    } else {
        try {
            const GilRelease unlocked;
            address = owner.allocate(size, site);
        } catch (const allocator::HostOutOfMemory& error) {
            const nb::object exception = refused_(error.what());
            PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
            return nullptr;
        }
    }
    return pointer_to(address, size);
}

PyObject* PinnedAllocator::pointer_to(std::uint64_t address, std::size_t size) {
    static const nb::handle type = nb::type<PinnedMemory>();
    nb::object memory = nb::inst_alloc(type);
    new (nb::inst_ptr<PinnedMemory>(memory)) PinnedMemory(*this, address, size);
    nb::inst_mark_ready(memory);
    return pointer_.make(std::move(memory), address);
}

// Also called while an exception is being handled, and after CUDA has shut down.
void PinnedAllocator::free(std::uint64_t address) noexcept {
    if (abandoned_.load(std::memory_order_relaxed)) {
        return;
    }
    const nb::error_scope pending;
    try {
        const int ordinal = state_.device();
        const StreamHandle current = state_.stream(ordinal);
        device::Device& device = device_at(ordinal);
        const CallSite site = call_site();
        const GilRelease unlocked;
        host_->free_after(address, device, {current, kLegacyStream}, site);
    } catch (const std::exception&) {
        ++lost_frees_;
    }
}

void PinnedAllocator::set_session(record::Session* session, bool stacks) noexcept {
    session_ = session;
    stacks_ = stacks;
}

}  // namespace gpuviz::cupy
