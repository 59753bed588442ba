#pragma once

#include <utility>
#include <vector>

#include "record/memory_event.hpp"

namespace gpuviz::replay {

// Keeps every event; for replays and tests. Read it when nobody pushes.
class EventLog final : public record::MemoryEventSink {
  public:
    // An event for which there is no memory ends the process: a log with a hole would lie.
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
