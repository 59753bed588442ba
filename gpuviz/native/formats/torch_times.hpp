#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/torch_snapshot.hpp"

namespace gpuviz::formats {

// Times of the events of a snapshot, in ns since the recording's start.
struct TorchTimes {
    std::vector<std::int64_t> events;  // never decreasing within a device
    std::int64_t start_unix_ns = 0;    // time 0 in ns since 1970; 0 if unknown
    std::int64_t end = 0;              // the latest time
    bool are_missing = false;          // the file has no times: events are placed 1 µs apart
    std::int64_t moved = 0;            // events that the file dates before their predecessors

    // The time of µs since 1970.
    [[nodiscard]] std::int64_t of(std::int64_t time_us) const noexcept {
        return are_missing ? 0 : std::max<std::int64_t>(time_us * 1000 - start_unix_ns, 0);
    }
};

// Throws FormatError if a time is after the year 2262.
[[nodiscard]] TorchTimes torch_times(const TorchSnapshot& snapshot);

}  // namespace gpuviz::formats
