#pragma once

#include <cstdint>

#include "record/memory_event.hpp"
#include "replay/replay_log.hpp"

namespace gpuviz::replay {

// What a replay led to, without its events.
class ReplayOutcome final : public ReplaySink {
  public:
    // Rows before `initial_events` are the state in which the program began. An expandable segment
    // of a large pool grows by pages of `large_page` bytes.
    ReplayOutcome(std::int64_t initial_events, std::uint64_t large_page) noexcept
        : initial_events_(initial_events), large_page_(large_page) {}

    void begin(std::int64_t origin) noexcept override;
    void push(const record::MemoryEvent& event) noexcept override;
    // To be called after the replay, of which there may be nothing but the initial state.
    void finish() noexcept { notice_levels(); }

    // Bytes; those at the peak are at the first maximum of allocated bytes.
    std::int64_t peak_allocated = -1;
    std::int64_t active_at_peak = 0;
    std::int64_t reserved_at_peak = 0;
    std::int64_t peak_reserved = 0;
    std::int64_t peak_reserved_origin = -1;  // the row of the recording that first led to it
    std::int64_t first_failure = -1;         // the row whose request failed; -1: none
    std::int64_t failures = 0;
    // Calls of the driver: segments and their bytes, and pages of expandable segments.
    std::int64_t segments_made = 0;
    std::int64_t bytes_made = 0;
    std::int64_t segments_released = 0;
    std::int64_t bytes_released = 0;
    std::int64_t pages_mapped = 0;
    std::int64_t pages_unmapped = 0;

  private:
    void change_levels(const record::MemoryEvent& event) noexcept;
    void count_call(const record::MemoryEvent& event) noexcept;
    void notice_levels() noexcept;

    std::int64_t initial_events_;
    std::uint64_t large_page_;
    std::int64_t origin_ = -1;
    bool has_begun_ = false;
    std::int64_t allocated_ = 0;
    std::int64_t active_ = 0;
    std::int64_t reserved_ = 0;
};

}  // namespace gpuviz::replay
