#include "cupy/cupy_state.hpp"

#include <cstring>

#include "device/cuda_device.hpp"
#include "record/thread_id.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

namespace {

// The C function that a Cython module exports under `name`; null if its signature differs.
void* exported(nb::handle module, const char* name, const char* signature) {
    if (!nb::hasattr(module, "__pyx_capi__")) {
        return nullptr;
    }
    const nb::dict functions = nb::borrow<nb::dict>(module.attr("__pyx_capi__"));
    if (!functions.contains(name)) {
        return nullptr;
    }
    const nb::object capsule = functions[name];
    const char* found = PyCapsule_GetName(capsule.ptr());
    if (found == nullptr || std::strcmp(found, signature) != 0) {
        return nullptr;
    }
    return PyCapsule_GetPointer(capsule.ptr(), signature);
}

void raise_if_failed(std::intptr_t result) {
    if (result == -1 && PyErr_Occurred() != nullptr) {
        throw nb::python_error();
    }
}

}  // namespace

CupyState::CupyState(nb::handle runtime_module, nb::handle stream_module,
                     nb::callable current_device, nb::callable current_stream,
                     std::uintptr_t context_device)
    : get_context_device_(reinterpret_cast<CUresult (*)(CUdevice*)>(context_device)),
      get_device_(reinterpret_cast<int (*)(int)>(
          exported(runtime_module, "getDevice", "int (int __pyx_skip_dispatch)"))),
      get_stream_of_(reinterpret_cast<std::intptr_t (*)(int)>(
          exported(stream_module, "get_stream_ptr", "intptr_t (int)"))),
      get_stream_(reinterpret_cast<std::intptr_t (*)()>(
          exported(stream_module, "get_current_stream_ptr", "intptr_t (void)"))),
      current_device_(std::move(current_device)),
      current_stream_(std::move(current_stream)) {}

int CupyState::device() const {
    // The driver first: while CUPTI records, it takes 0.1 us, the runtime 0.2 us. It fails if the
    // thread has no context yet.
    CUdevice of_context = 0;
    if (get_context_device_ != nullptr && get_context_device_(&of_context) == CUDA_SUCCESS) {
        return of_context;
    }
    if (get_device_ == nullptr) {
        return nb::cast<int>(current_device_());
    }
    const int device = get_device_(1);
    raise_if_failed(device);
    return device;
}

std::uint64_t CupyState::stream(int device) const {
    std::intptr_t handle = 0;
    if (get_stream_of_ != nullptr) {
        handle = get_stream_of_(device);
        raise_if_failed(handle);
    } else if (get_stream_ != nullptr) {
        handle = get_stream_();
        raise_if_failed(handle);
    } else {
        handle = nb::cast<std::intptr_t>(current_stream_());
    }
    const auto stream = static_cast<std::uint64_t>(handle);
    return stream == reinterpret_cast<std::uint64_t>(CU_STREAM_PER_THREAD)
               ? device::per_thread_stream(record::current_thread_id())
               : stream;
}

}  // namespace gpuviz::cupy
