#pragma once

#include <cstdint>

namespace gpuviz::record {

// A shorter source would cost too much to compare, next to its copy.
constexpr std::uint64_t least_content = 1 << 20;
// What of a longer range `content` reads.
constexpr std::uint64_t most_content = 1 << 16;

// A number that is equal for equal bytes of memory that can be read: of all, or of those at 64
// places, spread evenly over many.
[[nodiscard]] std::uint64_t content(std::uint64_t address, std::uint64_t bytes) noexcept;

// A number that is equal for the host's memory of copies with equal bytes at 64 places, spread
// evenly over it; 0 if there are fewer than `least_content` bytes, or if they cannot be read.
// Memory that is not the host's, or not mapped, does no harm.
[[nodiscard]] std::uint64_t sampled_content(std::uint64_t address, std::uint64_t bytes) noexcept;

}  // namespace gpuviz::record
