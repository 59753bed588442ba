#include "cupti/event_records.hpp"

namespace gpuviz::cupti {

void EventRecords::created(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    events_[handle] = {};
    event_of(handle).empty_in = trust_;
}

EventRecords::Record EventRecords::recorded(std::uint64_t handle, Owner owner) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    event.last.owner = owner;
    event.last.sync_id = ++records_seen_;
    event.empty_in = 0;
    return event.last;
}

EventRecords::Record EventRecords::last(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    if (event.is_recorded_elsewhere) {
        event.last.sync_id = ++records_seen_;
    }
    Record found = event.last;
    found.is_empty = event.empty_in == trust_;
    return found;
}

void EventRecords::captured(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    event.last.sync_id = 0;
    event.empty_in = 0;
}

void EventRecords::recorded_elsewhere(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Event& event = event_of(handle);
    event.is_recorded_elsewhere = true;
    event.empty_in = 0;
}

void EventRecords::may_be_recorded_elsewhere() noexcept {
    const std::lock_guard lock(mutex_);
    ++trust_;
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
