#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packing/block.hpp"
#include "packing/effort.hpp"

namespace gpuviz::packing {

// Blocks of which each part must be packed between `base` and the capacity.
struct Core {
    Positions blocks;
    std::int64_t base;
};

// What is left to do for a packing below a capacity. The blocks fit exactly if those of every core
// do, each core for itself.
struct Reduction {
    struct Placed {
        std::uint32_t block;
        std::int64_t offset;
    };

    std::vector<Core> cores;
    std::vector<Placed> placed;
    // Blocks that fit wherever the others are, if they are placed in this order, as low as they
    // fit, after all others.
    Positions last;
};

// Three rules, until none applies: parts of time that no block connects are independent; a block
// that overlaps all others of its part can be moved to the bottom; and a block can wait until the
// others are placed if the bytes between them, in gaps that are all too small, exceed what is free.
// All sizes are multiples of `granule`.
[[nodiscard]] Reduction reduced(std::span<const Block> blocks, std::int64_t capacity,
                                std::int64_t granule, Effort& effort);

// Blocks at these positions, in the sections that they need.
[[nodiscard]] std::vector<Block> chosen(std::span<const Block> blocks,
                                        std::span<const std::uint32_t> positions);

}  // namespace gpuviz::packing
