#pragma once

#include <cstdint>
#include <span>

#include "packing/block.hpp"
#include "packing/effort.hpp"

namespace gpuviz::packing {

struct Packing {
    Offsets offsets;
    // Most bytes of blocks that exist at once, and the begin after which they first do.
    std::int64_t load = 0;
    std::int64_t load_time = 0;
    // No packing is lower: the load, or more if a search found that the blocks do not fit into it.
    std::int64_t lower_bound = 0;
    // What the offsets need: the lower bound if they are proved optimal.
    std::int64_t upper_bound = 0;
};

// Offsets for blocks that exist from their begin until before their end, as low as found within the
// effort. Blocks that exist at the same time do not overlap. With the same seed, more effort finds
// the same packings and then better ones.
//
// Throws std::invalid_argument if a block does not end after its begin, if its size is not
// positive, or if the load exceeds 2**56 bytes.
[[nodiscard]] Packing pack(std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                           std::span<const std::int64_t> size, std::uint64_t seed, Effort& effort);

}  // namespace gpuviz::packing
