#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpuviz::allocator {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMinBlockSize = 512;
inline constexpr std::uint64_t kSmallSize = kMiB;           // up to here: the small pool
inline constexpr std::uint64_t kSmallBuffer = 2 * kMiB;     // segments and pages of the small pool
inline constexpr std::uint64_t kMinLargeAlloc = 10 * kMiB;  // from here on: own segments
inline constexpr std::uint64_t kRoundLarge = 2 * kMiB;      // own segments are multiples of this
inline constexpr std::uint64_t kLargestRequest = std::uint64_t{1} << 60;  // rejected from here on

// Divisions between two powers of two, by floor(log2(size)) - 20 clamped to the table; 0 or 1:
// none.
using RoundupDivisions = std::array<std::uint32_t, 16>;

constexpr std::uint64_t round_up(std::uint64_t size, std::uint64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

constexpr std::size_t roundup_index(std::uint64_t size) {
    const auto log2 = static_cast<std::size_t>(std::bit_width(size)) - 1;
    return std::clamp<std::size_t>(log2, 20, 35) - 20;
}

// The size of the block that serves a request of `size` > 0 bytes.
constexpr std::uint64_t round_size(std::uint64_t size, const RoundupDivisions& divisions) {
    size = std::max(size, kMinBlockSize);
    const std::uint64_t parts = divisions[roundup_index(size)];
    if (parts > 1 && size > kMinBlockSize * parts) {
        if (std::has_single_bit(size)) {
            return size;
        }
        const std::uint64_t step = std::bit_floor(size) >> (std::bit_width(parts) - 1);
        return step == 0 ? std::bit_ceil(size) : (size + step - 1) & ~(step - 1);
    }
    return (size + kMinBlockSize - 1) & ~(kMinBlockSize - 1);
}

// Whether a block of `size` bytes is split from a free block that has `rest` bytes more. Small
// pools and expandable segments are split finely.
constexpr bool is_split(bool finely, std::uint64_t size, std::uint64_t rest,
                        std::uint64_t max_split_size) {
    return finely ? rest >= kMinBlockSize : rest > kSmallSize && size < max_split_size;
}

// The size of a new segment for a block of `size` bytes.
constexpr std::uint64_t segment_size(std::uint64_t size, std::uint64_t large_segment_size) {
    if (size <= kSmallSize) {
        return kSmallBuffer;
    }
    return size < kMinLargeAlloc ? large_segment_size : round_up(size, kRoundLarge);
}

}  // namespace gpuviz::allocator
