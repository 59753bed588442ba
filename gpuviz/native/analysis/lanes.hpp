#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The activities of a device, or of one of its streams: their rows in order of their start.
struct LaneRows {
    std::int16_t device = 0;
    std::optional<std::uint32_t> stream;
    std::vector<std::uint32_t> rows;
};

// The activities of each device, followed by those of its streams, both ascending.
[[nodiscard]] std::vector<LaneRows> rows_by_lane(const ActivityRows& activities);

// The window with the given bounds; a missing bound is that of one or more activities.
[[nodiscard]] Interval window_of(const ActivityRows& activities,
                                 std::span<const std::uint32_t> rows,
                                 std::optional<std::int64_t> begin,
                                 std::optional<std::int64_t> end);

// Finds the gaps in a window between activities that come in order of their start.
class Gaps {
  public:
    explicit Gaps(Interval window) noexcept : window_(window), reached_(window.begin) {}

    // The gap before the next activity; empty if there is none.
    [[nodiscard]] Interval before(Interval activity) noexcept {
        const Interval idle = Interval{reached_, activity.begin}.within(window_);
        reached_ = std::max(reached_, activity.end);
        return idle;
    }
    // The gap after the last activity; empty if there is none.
    [[nodiscard]] Interval rest() const noexcept {
        return Interval{reached_, window_.end}.within(window_);
    }

  private:
    Interval window_;
    std::int64_t reached_;
};

// Calls `take` with each gap in the window, including those before the first and after the last
// activity, and with the row that ended the gap, if any, until `take` returns false.
template <typename Take>
void for_each_gap(const ActivityRows& activities, std::span<const std::uint32_t> rows,
                  Interval window, Take&& take) {
    Gaps gaps(window);
    for (const std::uint32_t row : rows) {
        const Interval idle = gaps.before(activities.interval(row));
        if (idle.length() > 0 && !take(idle, std::optional<std::size_t>(row))) return;
    }
    if (gaps.rest().length() > 0) take(gaps.rest(), std::optional<std::size_t>());
}

}  // namespace gpuviz::analysis
