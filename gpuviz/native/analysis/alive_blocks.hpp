#pragma once

#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// Columns of blocks of memory, of equal length.
struct BlockRows {
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> begin;
    std::span<const std::int64_t> end;  // negative if it was never freed
};

// Columns of what was at addresses at some times, of equal length.
struct AddressTimes {
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> time;
};

// For each address and time, the block that begins at the address and lives then: of several, the
// one that was made last; -1 if there is none.
[[nodiscard]] LongColumn<std::int64_t> alive_blocks(const BlockRows& blocks,
                                                    const AddressTimes& wanted);

}  // namespace gpuviz::analysis
