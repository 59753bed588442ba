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
        get_id_ = reinterpret_cast<decltype(get_id_)>(dlsym(driver, "cuStreamGetId"));
        get_flags_ = reinterpret_cast<decltype(get_flags_)>(dlsym(driver, "cuStreamGetFlags"));
        get_priority_ =
            reinterpret_cast<decltype(get_priority_)>(dlsym(driver, "cuStreamGetPriority"));
        get_context_ = reinterpret_cast<decltype(get_context_)>(dlsym(driver, "cuStreamGetCtx"));
        is_capturing_ =
            reinterpret_cast<decltype(is_capturing_)>(dlsym(driver, "cuStreamIsCapturing"));
    }
}

void CuptiStreams::created(CUcontext context, int device, CUstream stream) {
    describe({context, stream, false}, device, log_.since_start(record::now_ns()));
}

void CuptiStreams::destroyed(int device, CUstream stream) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = with_handle_.find(stream); found != with_handle_.end()) {
            device = found->second.device;
            with_handle_.erase(found);
        }
        const auto is_stream = [&](const auto& each) { return std::get<1>(each.first) == stream; };
        std::erase_if(known_, is_stream);
        std::erase_if(rows_, is_stream);
        std::erase_if(before_, is_stream);
        ++version_;
    }
    log_.streams.destroyed(device, reinterpret_cast<std::uint64_t>(stream),
                           log_.since_start(record::now_ns()));
}

void CuptiStreams::forget() {
    const std::lock_guard lock(mutex_);
    rows_.merge(before_);  // what was not used since
    before_ = std::exchange(rows_, {});
    known_.clear();
    with_handle_.clear();
    log_.streams.forget_tracer_ids();
    ++version_;
}

// The legacy stream cannot capture, and would be refused an answer while others do.
bool CuptiStreams::is_capturing(CUstream stream) const noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return is_capturing_ != nullptr && stream != nullptr && stream != CU_STREAM_LEGACY &&
           is_capturing_(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CuptiStreams::Used CuptiStreams::describe(const Key& key, int device, std::int64_t created) {
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
        return {};
    }
    if (!is_default && !is_per_thread) {
        return known_[known] = describe_by_handle(known, device, created);
    }
    const std::uint32_t id = row_of(
        known, {.id = 0,
                .device = device,
                .handle = is_per_thread ? device::per_thread_stream(thread) : 0,
                .tracer_id = tracer_id_of(context, nullptr, is_per_thread),
                .kind = is_per_thread ? StreamKind::per_thread_default : StreamKind::default_stream,
                .created = created});
    return known_[known] = {device, number_of(context), id};
}

std::uint32_t CuptiStreams::row_of(const Known& known, const record::Stream& stream) {
    const auto handle = std::get<1>(known);
    unsigned long long lasting_id = 0;
    if (handle != nullptr && get_id_ != nullptr) {
        get_id_(handle, &lasting_id);
    }
    const auto before = stream.created == 0 ? before_.find(known) : before_.end();
    if (before == before_.end() || before->second.second != lasting_id) {
        const std::uint32_t row = log_.streams.describe(stream);
        rows_[known] = {row, lasting_id};
        return row;
    }
    const std::uint32_t row = before->second.first;
    log_.streams.add_tracer_id(row, stream.device, stream.tracer_id);
    rows_[known] = before->second;
    return row;
}

CuptiStreams::Used CuptiStreams::describe_by_handle(const Known& key, int device,
                                                    std::int64_t created) {
    const auto [current, stream, thread] = key;
    CUcontext own = current;
    std::uint32_t own_device = std::uint32_t(device);
    if (get_context_ != nullptr && get_context_(stream, &own) == CUDA_SUCCESS && own != current) {
        library_.get_device_id(own, &own_device);
    }
    const auto known = with_handle_.find(stream);
    Used used = known == with_handle_.end() ? Used{} : known->second;
    if (used.id == 0 || created != 0) {
        record::Stream found{.id = 0,
                             .device = int(own_device),
                             .handle = reinterpret_cast<std::uint64_t>(stream),
                             .tracer_id = tracer_id_of(own, stream, false),
                             .created = created};
        unsigned flags = 0;
        if (get_flags_ != nullptr && get_flags_(stream, &flags) == CUDA_SUCCESS) {
            found.kind = (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::non_blocking
                                                               : StreamKind::blocking;
        }
        int priority = 0;
        if (get_priority_ != nullptr && get_priority_(stream, &priority) == CUDA_SUCCESS) {
            found.priority = priority;
        }
        used = {found.device, number_of(own), row_of(key, found)};
        with_handle_[stream] = used;
    }
    if (own != current) {
        log_.streams.add_tracer_id(used.id, device, tracer_id_of(current, stream, false));
    }
    return used;
}

CuptiStreams::Used CuptiStreams::by_handle(const Key& key, Used current) {
    const auto [context, stream, zero_is_per_thread] = key;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = with_handle_.find(stream); found != with_handle_.end()) {
            return found->second;
        }
    }
    const CUstream named = stream == nullptr && zero_is_per_thread ? CU_STREAM_PER_THREAD : stream;
    current.id = log_.streams.by_handle(current.device, handle_of(named),
                                        log_.since_start(record::now_ns()));
    return current;
}

std::uint64_t CuptiStreams::tracer_id_of(CUcontext context, CUstream stream,
                                         bool is_per_thread) const {
    std::uint32_t number = 0;
    const bool is_known =
        library_.get_stream_id(context, stream, is_per_thread, &number) == CUPTI_SUCCESS;
    return is_known ? number : 0;
}

std::uint32_t CuptiStreams::number_of(CUcontext context) const {
    std::uint32_t number = 0;
    return library_.get_context_id(context, &number) == CUPTI_SUCCESS ? number : 0;
}

}  // namespace gpuviz::cupti
