#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstring>

#include "cupti/cupti_calls.hpp"

// What CUPTI tells about a call.
namespace gpuviz::cupti {

// A parameter of a call, at an offset of CuptiCall in CUPTI's structure.
template <typename Value>
[[nodiscard]] Value member_at(const void* parameters, std::int16_t offset) {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(parameters) + offset, sizeof value);
    return value;
}

[[nodiscard]] inline CUstream stream_of(const CuptiCall& call, const void* parameters) {
    if (call.kind == CuptiCall::Kind::launch_ex) {
        return static_cast<const cuLaunchKernelEx_params*>(parameters)->config->hStream;
    }
    return member_at<CUstream>(parameters, call.stream);
}

// The stream of a call, which is not null if it is the per-thread default stream.
[[nodiscard]] inline CUstream named_stream_of(const CuptiCall& call, const void* parameters) {
    const CUstream stream = stream_of(call, parameters);
    return stream == nullptr && call.is_per_thread ? CU_STREAM_PER_THREAD : stream;
}

[[nodiscard]] inline bool has_succeeded(const CUpti_CallbackData& data) {
    const auto* const result = static_cast<const CUresult*>(data.functionReturnValue);
    return result != nullptr && *result == CUDA_SUCCESS;
}

}  // namespace gpuviz::cupti
