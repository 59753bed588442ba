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

// Calls `take` with each gap in the window, including those before the first and after the last
// activity, and with the row that ended the gap, if any, until `take` returns false.
template <typename Take>
void for_each_gap(const ActivityRows& activities, std::span<const std::uint32_t> rows,
                  Interval window, Take&& take) {
    std::int64_t reached = window.begin;
    for (const std::uint32_t row : rows) {
        const Interval time = activities.interval(row);
        const Interval idle = Interval{reached, time.begin}.within(window);
        if (idle.length() > 0 && !take(idle, std::optional<std::size_t>(row))) return;
        reached = std::max(reached, time.end);
    }
    const Interval rest = Interval{reached, window.end}.within(window);
    if (rest.length() > 0) take(rest, std::optional<std::size_t>());
}

}  // namespace gpuviz::analysis
