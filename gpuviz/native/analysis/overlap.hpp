#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/idle_causes.hpp"
#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// How long the activities of a device or a stream ran in a window, in ns.
struct RunTimes {
    std::int64_t count = 0;
    std::int64_t sum = 0;
    std::int64_t busy = 0;
    std::int64_t kernel = 0;
    std::int64_t copy = 0;
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

// A time in which nothing of a lane ran; `next` is the row that ended it, if any.
struct Gap {
    Interval time;
    std::optional<std::size_t> next;
};

// The rows of a device, or of one of its streams, in order of their begin.
struct LaneRows {
    std::int16_t device = 0;
    std::optional<std::uint32_t> stream;
    std::vector<std::size_t> rows;
};

// The rows of each device, followed by those of its streams, both ascending.
[[nodiscard]] std::vector<LaneRows> rows_by_lane(const ActivityRows& activities);

// From the first begin to the last end of rows in order of their begin, of which there are some.
[[nodiscard]] Interval time_of(const ActivityRows& activities, std::span<const std::size_t> rows);

// What ran in the window, of rows in order of their begin.
[[nodiscard]] RunTimes run_times(const ActivityRows& activities, std::span<const std::size_t> rows,
                                 Interval window);

// The gaps between those rows, before the first and after the last, as far as in the window.
[[nodiscard]] std::vector<Gap> gaps(const ActivityRows& activities,
                                    std::span<const std::size_t> rows, Interval window);

// A lane for each device, followed by those of its streams, both ascending. An end of the window
// that is not given is that of the device's activities.
[[nodiscard]] std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                                        const SynchronizationRows& synchronizations,
                                        std::optional<std::int64_t> window_begin,
                                        std::optional<std::int64_t> window_end);

}  // namespace gpuviz::analysis
