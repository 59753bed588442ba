#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hazards/capture.hpp"
#include "hazards/clock.hpp"

namespace gpuviz::hazards {

using EventId = std::uint32_t;

struct Event {
    bool exists = true;
    bool is_recorded = false;
    Clock clock;
    std::shared_ptr<Capture> capture;  // that recorded it last
};

// The events by id. Ids of events that do not exist throw std::invalid_argument. Not thread-safe.
class Events {
  public:
    [[nodiscard]] EventId create();
    void destroy(EventId id);
    // Valid until the next create().
    [[nodiscard]] Event& of(EventId id);

  private:
    std::vector<Event> events_;
    std::vector<EventId> unused_;
};

}  // namespace gpuviz::hazards
