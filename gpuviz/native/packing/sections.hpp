#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packing/block.hpp"

namespace gpuviz::packing {

// Blocks in sections: the shortest numbering of time in which the same blocks overlap. In each
// section, the blocks are those that exist at its last begin, before any of them ends.
struct Sections {
    std::vector<Block> blocks;
    std::vector<std::int64_t> times;  // of the last begin in each section
    std::vector<std::int64_t> loads;  // bytes of the blocks of each section
};

// A block exists from its begin until before its end. Every block must end after its begin.
[[nodiscard]] Sections sections(std::span<const std::int64_t> begin,
                                std::span<const std::int64_t> end,
                                std::span<const std::int64_t> size);

}  // namespace gpuviz::packing
