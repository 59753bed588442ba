#pragma once

#include <cstdint>

namespace gpuviz::record {

// The state of a hash of words after one more: equal for equal words in the same order. It finds
// changes, and resists no attacker.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t state, std::uint64_t word) noexcept {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2**64 divided by the golden ratio
    const std::uint64_t product = (state ^ word) * golden;
    return product ^ (product >> 32);
}

}  // namespace gpuviz::record
