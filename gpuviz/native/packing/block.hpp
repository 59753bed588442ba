#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpuviz::packing {

// A block that needs `size` bytes at one offset from `begin` until before `end`, in sections.
struct Block {
    std::int32_t begin;
    std::int32_t end;
    std::int64_t size;
    std::int64_t lifetime;  // in any unit, to compare blocks by
};

// The position of a section in a list.
[[nodiscard]] inline std::size_t index(std::int32_t section) noexcept {
    return static_cast<std::size_t>(section);
}

// Offsets of blocks, in bytes, by position.
using Offsets = std::vector<std::int64_t>;
// Positions in a list of blocks.
using Positions = std::vector<std::uint32_t>;

}  // namespace gpuviz::packing
