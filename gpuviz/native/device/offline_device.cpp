#include "device/offline_device.hpp"

#include <algorithm>

namespace gpuviz::device {

void OfflineDevice::occupy(StreamHandle stream) {
    if (!is_busy(stream)) {
        busy_.push_back(stream);
    }
}

void OfflineDevice::finish(StreamHandle stream) {
    std::erase(busy_, stream);
    std::erase_if(pending_, [&](EventHandle handle) {
        Event& event = events_[handle - 1];
        event.complete = event.complete || event.stream == stream;
        return event.complete;
    });
}

void OfflineDevice::finish_all() {
    busy_.clear();
    for (const EventHandle handle : pending_) {
        events_[handle - 1].complete = true;
    }
    pending_.clear();
}

void OfflineDevice::complete(std::uint32_t label) {
    for (std::size_t last = 0; last < pending_.size(); ++last) {
        const Event event = events_[pending_[last] - 1];
        if (event.label != label + std::uint64_t{1}) {
            continue;
        }
        for (std::size_t at = 0; at <= last; ++at) {
            Event& earlier = events_[pending_[at] - 1];
            earlier.complete = earlier.complete || earlier.stream == event.stream;
        }
    }
    std::erase_if(pending_, [&](EventHandle handle) { return events_[handle - 1].complete; });
}

bool OfflineDevice::is_busy(StreamHandle stream) const noexcept {
    return std::find(busy_.begin(), busy_.end(), stream) != busy_.end();
}

EventHandle OfflineDevice::record_event(StreamHandle stream) {
    const Event event{.stream = stream, .label = held_, .complete = held_ == 0 && !is_busy(stream)};
    EventHandle handle = events_.size() + 1;
    if (unused_events_.empty()) {
        events_.push_back(event);
    } else {
        handle = unused_events_.back();
        unused_events_.pop_back();
        events_[handle - 1] = event;
    }
    if (!event.complete) {
        pending_.push_back(handle);
    }
    return handle;
}

bool OfflineDevice::is_complete(EventHandle event) { return events_.at(event - 1).complete; }

void OfflineDevice::synchronize(EventHandle event) {
    if (!is_complete(event)) {
        finish(events_[event - 1].stream);
    }
}

void OfflineDevice::release(EventHandle event) {
    std::erase(pending_, event);
    unused_events_.push_back(event);
}

bool OfflineDevice::take(std::uint64_t size) noexcept {
    if (size > total_memory_ - used_) {
        return false;
    }
    used_ += size;
    return true;
}

}  // namespace gpuviz::device
