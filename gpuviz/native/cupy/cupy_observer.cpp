#include "cupy/cupy_observer.hpp"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "record/observed_call.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

using record::ObservedPool;

namespace {

// Pools raise a MemoryError; allocators that only call CUDA raise its error.
bool is_out_of_memory(const nb::python_error& error) {
    constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
    return error.matches(PyExc_MemoryError) ||
           (nb::cast<std::string>(nb::handle(error.type()).attr("__name__")) ==
                "CUDARuntimeError" &&
            nb::cast<int>(error.value().attr("status")) == kMemoryAllocation);
}

}  // namespace

CupyObserver::CupyObserver(nb::handle memory_module, CupyState state, nb::callable allocator,
                           nb::object total_bytes, nb::object total_bytes_of,
                           nb::object out_of_memory)
    : pointer_(memory_module, this, &take_allocated, &free_callback),
      state_(std::move(state)),
      allocator_(std::move(allocator)),
      total_bytes_(std::move(total_bytes)),
      total_bytes_of_(std::move(total_bytes_of)),
      out_of_memory_(std::move(out_of_memory)) {}

std::uint64_t CupyObserver::total_bytes(const nb::object& of_device) const {
    const nb::object& known =
        of_device.is_valid() && !of_device.is_none() ? of_device : total_bytes_;
    return known.is_none() ? ObservedPool::kUnknownTotal : nb::cast<std::uint64_t>(known());
}

record::CallSite CupyObserver::call_site() const noexcept {
    if (session_ == nullptr) {
        return {.framework = record::Framework::cupy};
    }
    return session_->call_site(stacks_, record::Framework::cupy);
}

PyObject* CupyObserver::malloc(PyObject* size) noexcept {
    try {
        const std::size_t bytes = PyLong_AsSize_t(size);
        if (bytes == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
            return nullptr;
        }
        const int device = state_.device();
        Pool& current = pool(device);
        const record::Session* const session = session_;
        record::CallSite site = call_site();
        current.observed.update(total_bytes(current.total_bytes), site);
        nb::object pointer;
        try {
            std::optional<record::ObservedCall> call;
            if (session != nullptr) {
                call.emplace();
            }
            pointer = allocator_(nb::borrow(size));
        } catch (nb::python_error& error) {
            if (is_out_of_memory(error)) {
                // It may have released segments before it failed.
                current.observed.update(total_bytes(current.total_bytes), call_site());
                current.observed.out_of_memory(bytes, state_.stream(device), call_site());
                if (!out_of_memory_.is_none()) {
                    out_of_memory_(error.value(), device, bytes);
                }
            }
            throw;
        }
        if (session_ != session) {
            site = call_site();  // another thread has begun or ended a recording
        }
        return observe(std::move(pointer), bytes, site).release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

CupyObserver::Pool& CupyObserver::pool(int device) {
    const auto known = pools_.find(device);
    if (known != pools_.end()) {
        return known->second;
    }
    const std::uint64_t total = total_bytes({});
    Pool& added = pools_.try_emplace(device, Pool{ObservedPool(device, total), {}}).first->second;
    if (session_ != nullptr) {
        added.observed.set_sink(&session_->sink(device));
    }
    return added;
}

nb::object CupyObserver::observe(nb::object pointer, std::size_t requested_size,
                                 const record::CallSite& site) {
    CupyPointer::Target target = pointer_.target_of(pointer);
    const std::uint64_t address = target.address;
    if (address == 0) {
        return pointer;
    }
    allocated_ = address;
    nb::object observed = nb::steal(pointer_.make(address, target.size, target.device));
    if (!observed.is_valid()) {
        throw nb::python_error();
    }
    Pool& from = pool(target.device);
    if (!from.total_bytes.is_valid() && !total_bytes_of_.is_none()) {
        from.total_bytes = total_bytes_of_(target.memory);
    }
    held_.emplace(address, std::move(target.memory));
    if (!self_.is_valid()) {
        self_ = nb::find(this);
    }
    from.observed.allocated({address, target.size, requested_size, state_.stream(target.device)},
                            total_bytes(from.total_bytes), site);
    return observed;
}

void* CupyObserver::take_allocated(void* self, std::size_t /*size*/, int /*device*/) {
    return reinterpret_cast<void*>(static_cast<CupyObserver*>(self)->allocated_);
}

void CupyObserver::free_callback(void* self, void* address, int device) noexcept {
    auto& observer = *static_cast<CupyObserver*>(self);
    const auto at = reinterpret_cast<std::uint64_t>(address);
    const auto held = observer.held_.find(at);
    if (held == observer.held_.end()) {
        return;
    }
    // The program's code may run below and release the other references.
    const nb::object kept = observer.self_;
    const auto pool = observer.pools_.find(device);
    if (pool != observer.pools_.end()) {
        pool->second.observed.freed(at, observer.call_site());
    }
    // Released only after the free is recorded, so that the address is never live twice.
    nb::object last = std::move(held->second);
    observer.held_.erase(held);
    last.reset();
    if (observer.held_.empty()) {
        observer.self_.reset();
    }
}

void CupyObserver::set_session(record::Session* session, bool stacks) {
    session_ = session;
    stacks_ = stacks;
    for (auto& [device, pool] : pools_) {
        pool.observed.set_sink(session == nullptr ? nullptr : &session->sink(device));
        pool.observed.describe_state();
    }
}

std::vector<int> CupyObserver::devices() const {
    std::vector<int> seen;
    seen.reserve(pools_.size());
    for (const auto& [device, pool] : pools_) {
        seen.push_back(device);
    }
    return seen;
}

}  // namespace gpuviz::cupy
