#pragma once

#include <cuda.h>
#include <nanobind/nanobind.h>

#include <cstdint>

namespace gpuviz::cupy {

// CuPy's current device and stream of the calling thread.
//
// Calls CuPy's C functions if it exports them (`__pyx_capi__`) with the expected signature, else
// its Python functions. The GIL must be held; a failing call throws nanobind::python_error.
class CupyState {
  public:
    // `runtime_module` is cupy_backends.cuda.api.runtime, `stream_module`
    // cupy_backends.cuda.stream. `context_device` is the address of the driver's cuCtxGetDevice; 0
    // if the device of the current context may differ from the current device.
    CupyState(nanobind::handle runtime_module, nanobind::handle stream_module,
              nanobind::callable current_device, nanobind::callable current_stream,
              std::uintptr_t context_device);

    [[nodiscard]] int device() const;
    // The raw handle; for a per-thread default stream, a separate handle for each thread.
    [[nodiscard]] std::uint64_t stream(int device) const;

  private:
    CUresult (*get_context_device_)(CUdevice* device) = nullptr;
    int (*get_device_)(int skip_dispatch) = nullptr;
    std::intptr_t (*get_stream_of_)(int device) = nullptr;
    std::intptr_t (*get_stream_)() = nullptr;
    nanobind::callable current_device_;
    nanobind::callable current_stream_;
};

}  // namespace gpuviz::cupy
