#include "hazards/events.hpp"

#include "hazards/unknown_id.hpp"

namespace gpuviz::hazards {

EventId Events::create() {
    if (unused_.empty()) {
        events_.emplace_back();
        return static_cast<EventId>(events_.size() - 1);
    }
    const EventId id = unused_.back();
    unused_.pop_back();
    events_[id] = {};
    return id;
}

void Events::destroy(EventId id) {
    of(id) = {.exists = false, .clock = {}, .capture = {}};
    unused_.push_back(id);
}

Event& Events::of(EventId id) {
    if (id >= events_.size() || !events_[id].exists) throw_unknown("event", id);
    return events_[id];
}

}  // namespace gpuviz::hazards
