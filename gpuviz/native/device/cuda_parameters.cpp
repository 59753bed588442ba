#include "device/cuda_parameters.hpp"

#include <dlfcn.h>

namespace gpuviz::device {

CudaParameters::CudaParameters() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (driver != nullptr) {
        function_info_ = reinterpret_cast<Info>(dlsym(driver, "cuFuncGetParamInfo"));
        kernel_info_ = reinterpret_cast<Info>(dlsym(driver, "cuKernelGetParamInfo"));
    }
}

std::optional<ParameterPlaces> CudaParameters::of(void* kernel) const {
    std::optional<ParameterPlaces> none;
    for (const Info info : {function_info_, kernel_info_}) {
        ParameterPlaces places;
        ParameterPlace next{0, 0};
        CUresult result = CUDA_ERROR_NOT_FOUND;
        while (info != nullptr &&
               (result = info(kernel, places.size(), &next.offset, &next.size)) == CUDA_SUCCESS) {
            places.push_back(next);
        }
        if (!places.empty()) {
            return places;
        }
        // Past the last parameter the result is an invalid value, possibly also for a handle of the
        // other kind.
        if (result == CUDA_ERROR_INVALID_VALUE) {
            none.emplace();
        }
    }
    return none;
}

// The packed form is a list of keys, each with a value, up to CU_LAUNCH_PARAM_END.
ParameterValues::ParameterValues(void* const* parameters, void* const* extra) noexcept
    : parameters_(parameters) {
    for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            packed_ = static_cast<const std::byte*>(extra[1]);
        }
    }
}

}  // namespace gpuviz::device
