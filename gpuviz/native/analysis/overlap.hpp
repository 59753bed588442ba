#pragma once

#include <cstdint>
#include <optional>
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

// A lane for each device, followed by those of its streams, both ascending. A missing bound of the
// window is that of the device's activities.
[[nodiscard]] std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                                        const SynchronizationRows& synchronizations,
                                        std::optional<std::int64_t> window_begin,
                                        std::optional<std::int64_t> window_end);

}  // namespace gpuviz::analysis
