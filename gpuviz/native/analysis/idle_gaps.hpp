#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The derived table `idle_gaps` in columns: parts of gaps with one cause each.
struct IdleGaps {
    std::vector<std::int16_t> device;
    std::vector<std::uint32_t> stream;  // 0 for the device as a whole
    std::vector<std::int64_t> time;
    std::vector<std::int64_t> end;
    std::vector<std::uint8_t> cause;     // an IdleCause
    std::vector<std::int32_t> activity;  // the row that ended the gap, -1 if none
};

// The idle time of each device in a window, followed by that of its streams, both ascending. A
// missing bound of the window is that of the device's activities. A lane that would exceed
// `most_rows`, and those after it, are omitted, because many streams may have many more parts than
// activities.
[[nodiscard]] IdleGaps idle_gaps(const ActivityRows& activities, const HostCallRows& calls,
                                 const SynchronizationRows& synchronizations, std::size_t most_rows,
                                 std::optional<std::int64_t> window_begin = std::nullopt,
                                 std::optional<std::int64_t> window_end = std::nullopt);

}  // namespace gpuviz::analysis
