#pragma once

#include <ctime>

#include <cstdint>

namespace gpuviz {

// Nanoseconds of the one clock of every recording (CLOCK_MONOTONIC: same in all threads, never set
// back).
inline std::int64_t now_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace gpuviz
