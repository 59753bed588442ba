#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The derived table `idle_gaps`, column by column: parts of gaps that have one cause each.
struct IdleGaps {
    std::vector<std::int16_t> device;
    std::vector<std::uint32_t> stream;  // 0 for the device as a whole
    std::vector<std::int64_t> time;
    std::vector<std::int64_t> end;
    std::vector<std::uint8_t> cause;     // an IdleCause
    std::vector<std::int32_t> activity;  // the row that ended the gap, -1 if none
};

// The idle time of each device, from its first begin to its last end, followed by that of its
// streams, both ascending. A lane that would make it longer than `most_rows`, and those after it,
// are left out: the parts of many streams may be many times the rows that they come from.
[[nodiscard]] IdleGaps idle_gaps(const ActivityRows& activities, const HostCallRows& calls,
                                 const SynchronizationRows& synchronizations,
                                 std::size_t most_rows);

}  // namespace gpuviz::analysis
