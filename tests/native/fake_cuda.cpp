// A driver without a GPU, to be loaded as libcuda: it describes the parameters of one kernel.

#include <cuda.h>

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

extern "C" {

// An int, a pointer, an int, and a structure of two pointers.
CUresult cuFuncGetParamInfo(CUfunction, std::size_t index, std::size_t* offset, std::size_t* size) {
    constexpr std::array<std::pair<std::size_t, std::size_t>, 4> places{
        {{0, 4}, {8, 8}, {16, 4}, {24, 16}}};
    if (index >= places.size()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::tie(*offset, *size) = places[index];
    return CUDA_SUCCESS;
}

#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxPopCurrent_v2(CUcontext*) { return CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

}  // extern "C"
