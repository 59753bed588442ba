#pragma once

#include <ctime>

#include <cstdint>

namespace gpuviz::record {

inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
    timespec now;
    clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The clock of recordings in nanoseconds (CLOCK_MONOTONIC: the same in all threads, never set
// back).
inline std::int64_t now_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

}  // namespace gpuviz::record
