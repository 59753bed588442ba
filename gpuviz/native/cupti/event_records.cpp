#include "cupti/event_records.hpp"

namespace gpuviz::cupti {

EventRecords::Record EventRecords::recorded(std::uint64_t handle, Owner owner) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    event.last.owner = owner;
    event.last.sync_id = ++records_seen_;
    return event.last;
}

EventRecords::Record EventRecords::last(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    if (event.is_recorded_elsewhere) {
        event.last.sync_id = ++records_seen_;
    }
    return event.last;
}

void EventRecords::captured(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    event_of(handle).last.sync_id = 0;
}

void EventRecords::recorded_elsewhere(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    event_of(handle).is_recorded_elsewhere = true;
}

void EventRecords::destroyed(std::uint64_t handle) noexcept {
    const std::lock_guard lock(mutex_);
    events_.erase(handle);
}

void EventRecords::forget() noexcept {
    const std::lock_guard lock(mutex_);
    events_.clear();
}

EventRecords::Event& EventRecords::event_of(std::uint64_t handle) {
    Event& event = events_[handle];
    if (event.last.event == 0) {
        event.last.event = ++events_seen_;
    }
    return event;
}

}  // namespace gpuviz::cupti
