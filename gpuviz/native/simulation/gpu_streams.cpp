#include "simulation/gpu_streams.hpp"

#include <sstream>
#include <stdexcept>

namespace gpuviz::simulation {

using device::StreamHandle;
using record::StreamKind;

namespace {

// Like real handles, which are addresses of heap objects.
constexpr StreamHandle first_handle = 0x5555'0000'1000;
constexpr StreamHandle handle_step = 0x600;

}  // namespace

GpuStreams::GpuStreams() : next_handle_(first_handle) {
    streams_[0] = {
        .handle = 0, .kind = StreamKind::default_stream, .priority = 0, .number = ++created_};
}

GpuStream& GpuStreams::create(StreamKind kind, int priority) {
    StreamHandle handle = next_handle_;
    if (unused_handles_.empty()) {
        next_handle_ += handle_step;
    } else {
        handle = unused_handles_.back();
        unused_handles_.pop_back();
    }
    return streams_[handle] = {
               .handle = handle, .kind = kind, .priority = priority, .number = ++created_};
}

void GpuStreams::destroy(StreamHandle handle, const GpuSchedule& schedule) {
    if (handle == 0) {
        throw std::invalid_argument("The default stream cannot be destroyed.");
    }
    const GpuStream& stream = at(handle);
    std::erase_if(destroyed_, [&](const GpuStream& each) { return schedule.has_ended(each.last); });
    if (!schedule.has_ended(stream.last)) {
        destroyed_.push_back(stream);
    }
    unused_handles_.push_back(handle);
    streams_.erase(handle);
}

GpuStream* GpuStreams::find(StreamHandle handle) noexcept {
    const auto found = streams_.find(handle);
    return found == streams_.end() ? nullptr : &found->second;
}

GpuStream& GpuStreams::at(StreamHandle handle) {
    if (GpuStream* stream = find(handle)) {
        return *stream;
    }
    std::ostringstream text;
    text << "The simulated GPU has no stream 0x" << std::hex << handle
         << "; it was destroyed, or belongs to another GPU.";
    throw std::invalid_argument(text.str());
}

std::vector<GpuSchedule::Id> GpuStreams::before(const GpuStream& stream) const {
    std::vector<GpuSchedule::Id> before{stream.last};
    if (stream.kind == StreamKind::blocking) {
        before.push_back(streams_.at(0).last);
    } else if (stream.kind == StreamKind::default_stream) {
        const auto add = [&](const GpuStream& other) {
            if (other.kind == StreamKind::blocking) {
                before.push_back(other.last);
            }
        };
        for (const auto& [handle, other] : streams_) {
            add(other);
        }
        for (const GpuStream& other : destroyed_) {
            add(other);
        }
    }
    return before;
}

std::vector<GpuSchedule::Id> GpuStreams::pending(const GpuStream& stream) const {
    if (stream.kind == StreamKind::default_stream) {
        return before(stream);
    }
    return {stream.last};
}

std::vector<GpuSchedule::Id> GpuStreams::newest() const {
    std::vector<GpuSchedule::Id> newest;
    newest.reserve(streams_.size() + destroyed_.size());
    for (const auto& [handle, stream] : streams_) {
        newest.push_back(stream.last);
    }
    for (const GpuStream& stream : destroyed_) {
        newest.push_back(stream.last);
    }
    return newest;
}

}  // namespace gpuviz::simulation
