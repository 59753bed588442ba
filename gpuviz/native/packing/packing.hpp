#pragma once

#include <cstdint>
#include <span>

#include "packing/block.hpp"
#include "packing/effort.hpp"

namespace gpuviz::packing {

struct Packing {
    Offsets offsets;
    // Most bytes of blocks that exist at once, and the begin after which they first do. No packing
    // needs fewer.
    std::int64_t load = 0;
    std::int64_t load_time = 0;
    // What the offsets need.
    std::int64_t height = 0;
};

// Offsets for blocks that exist from their begin until before their end, as low as found within the
// effort. Blocks that exist at the same time do not overlap. More effort continues the same
// attempts.
//
// Throws std::invalid_argument if a block does not end after its begin, if its size is not
// positive, or if the load exceeds 2**56 bytes.
[[nodiscard]] Packing pack(std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                           std::span<const std::int64_t> size, Effort& effort);

}  // namespace gpuviz::packing
