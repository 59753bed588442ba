#pragma once

#include <utility>
#include <vector>

#include "record/memory_event.hpp"

namespace gpuviz::replay {

// Stores every event, for replays and tests. Must not be read during a push.
class EventLog final : public record::MemoryEventSink {
  public:
    // Terminates the process if out of memory, because a log with missing events would be wrong.
    void push(const record::MemoryEvent& event) noexcept override {
        record::for_each_row(event,
                             [&](const record::MemoryEvent& row) { events_.push_back(row); });
    }

    [[nodiscard]] const std::vector<record::MemoryEvent>& events() const noexcept {
        return events_;
    }
    void clear() noexcept { events_.clear(); }

  private:
    std::vector<record::MemoryEvent> events_;
};

}  // namespace gpuviz::replay
