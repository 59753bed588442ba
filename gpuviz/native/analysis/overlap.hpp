#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/idle_causes.hpp"
#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// Run times of the activities of a device or a stream in a window, in ns.
struct RunTimes {
    std::int64_t count = 0;
    std::int64_t sum = 0;
    std::int64_t busy = 0;
    std::int64_t kernel = 0;
    std::int64_t copy = 0;
    std::int64_t device_copy = 0;
    std::int64_t kernel_copy = 0;
    std::int64_t kernel_kernel = 0;
};

// The activities of a device, or of one of its streams.
struct Lane {
    std::int16_t device = 0;
    std::optional<std::uint32_t> stream;
    Interval window;
    RunTimes times;
    IdleTimes idle;
};

// An activity, and its row in the table.
struct LaneRow {
    Interval time;
    std::uint32_t row;
    std::uint8_t work;
};

// The activities of a device, or of one of its streams, in order of their start.
struct LaneRows {
    std::int16_t device = 0;
    std::optional<std::uint32_t> stream;
    std::vector<LaneRow> rows;
};

// The activities of each device, followed by those of its streams, both ascending.
[[nodiscard]] std::vector<LaneRows> rows_by_lane(const ActivityRows& activities);

// From the first start to the last end of one or more activities in order of their start.
[[nodiscard]] Interval time_of(std::span<const LaneRow> rows);

// The given window; a missing bound is that of the activities.
[[nodiscard]] Interval window_of(std::span<const LaneRow> rows, std::optional<std::int64_t> begin,
                                 std::optional<std::int64_t> end);

// The run times in the window of activities in order of their start.
[[nodiscard]] RunTimes run_times(std::span<const LaneRow> rows, Interval window);

// Calls `take` with each gap in the window, including those before the first and after the last
// activity, and with the row that ended the gap, if any, until `take` returns false.
template <typename Take>
void for_each_gap(std::span<const LaneRow> rows, Interval window, Take&& take) {
    std::int64_t reached = window.begin;
    for (const LaneRow& each : rows) {
        const Interval idle = Interval{reached, each.time.begin}.within(window);
        if (idle.length() > 0 && !take(idle, std::optional<std::size_t>(each.row))) return;
        reached = std::max(reached, each.time.end);
    }
    const Interval rest = Interval{reached, window.end}.within(window);
    if (rest.length() > 0) take(rest, std::optional<std::size_t>());
}

// A lane for each device, followed by those of its streams, both ascending. A missing bound of the
// window is that of the device's activities.
[[nodiscard]] std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                                        const SynchronizationRows& synchronizations,
                                        std::optional<std::int64_t> window_begin,
                                        std::optional<std::int64_t> window_end);

}  // namespace gpuviz::analysis
