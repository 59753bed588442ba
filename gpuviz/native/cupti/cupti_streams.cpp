#include "cupti/cupti_streams.hpp"

#include <dlfcn.h>

#include "device/cuda_device.hpp"
#include "record/clock.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::cupti {

using record::StreamKind;

namespace {

std::uint64_t next_number() {
    static std::atomic<std::uint64_t> numbers{0};
    return ++numbers;
}

}  // namespace

std::uint64_t handle_of(CUstream stream) {
    if (stream == CU_STREAM_PER_THREAD) {
        return device::per_thread_stream(record::current_thread_id());
    }
    return stream == CU_STREAM_LEGACY ? 0 : reinterpret_cast<std::uint64_t>(stream);
}

CuptiStreams::CuptiStreams(const CuptiLibrary& library, record::ActivityLog& log)
    : library_(library), log_(log), number_(next_number()) {
    if (void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
        get_flags_ = reinterpret_cast<decltype(get_flags_)>(dlsym(driver, "cuStreamGetFlags"));
        get_priority_ =
            reinterpret_cast<decltype(get_priority_)>(dlsym(driver, "cuStreamGetPriority"));
        is_capturing_ =
            reinterpret_cast<decltype(is_capturing_)>(dlsym(driver, "cuStreamIsCapturing"));
    }
}

void CuptiStreams::created(CUcontext context, int device, CUstream stream) {
    describe({context, stream, false}, device, log_.since_start(record::now_ns()));
}

void CuptiStreams::destroyed(CUcontext context, int device, CUstream stream) {
    {
        const std::lock_guard lock(mutex_);
        known_.erase({context, stream, 0});
        ++version_;
    }
    log_.streams.destroyed(device, reinterpret_cast<std::uint64_t>(stream),
                           log_.since_start(record::now_ns()));
}

// The legacy stream cannot capture, and would be refused an answer while others do.
bool CuptiStreams::is_capturing(CUstream stream) const noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return is_capturing_ != nullptr && stream != nullptr && stream != CU_STREAM_LEGACY &&
           is_capturing_(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::uint32_t CuptiStreams::describe(const Key& key, int device, std::int64_t created) {
    const auto [context, stream, zero_is_per_thread] = key;
    const bool is_per_thread =
        stream == CU_STREAM_PER_THREAD || (stream == nullptr && zero_is_per_thread);
    const bool is_default = !is_per_thread && (stream == nullptr || stream == CU_STREAM_LEGACY);
    const std::uint32_t thread = is_per_thread ? record::current_thread_id() : 0;
    const std::lock_guard lock(mutex_);
    const std::tuple known(context, is_default || is_per_thread ? nullptr : stream, thread);
    if (const auto found = known_.find(known); found != known_.end()) {
        return found->second;
    }
    if (is_capturing(is_per_thread ? CU_STREAM_PER_THREAD : stream)) {
        return 0;
    }
    record::Stream found{.id = 0, .device = device, .handle = 0};
    std::uint32_t number = 0;
    if (library_.get_stream_id(context, is_default || is_per_thread ? nullptr : stream,
                               is_per_thread, &number) == CUPTI_SUCCESS) {
        found.tracer_id = number;
    }
    found.created = created;
    if (is_default) {
        found.kind = StreamKind::default_stream;
    } else if (is_per_thread) {
        found.kind = StreamKind::per_thread;
        found.handle = device::per_thread_stream(thread);
    } else {
        found.handle = reinterpret_cast<std::uint64_t>(stream);
        unsigned flags = 0;
        if (get_flags_ != nullptr && get_flags_(stream, &flags) == CUDA_SUCCESS) {
            found.kind = (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::non_blocking
                                                               : StreamKind::blocking;
        }
        int priority = 0;
        if (get_priority_ != nullptr && get_priority_(stream, &priority) == CUDA_SUCCESS) {
            found.priority = priority;
        }
    }
    return known_[known] = log_.streams.describe(found);
}

std::uint32_t CuptiStreams::by_handle(const Key& key, int device) {
    const auto [context, stream, zero_is_per_thread] = key;
    const CUstream named = stream == nullptr && zero_is_per_thread ? CU_STREAM_PER_THREAD : stream;
    return log_.streams.by_handle(device, handle_of(named), log_.since_start(record::now_ns()));
}

}  // namespace gpuviz::cupti
