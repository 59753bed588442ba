#pragma once

#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

enum class Access : std::uint8_t { read = 1, write = 2, write_all = 4 };  // bits

// What work does with blocks of memory; the accesses of one work follow each other.
struct Accesses {
    std::span<const std::uint32_t> work;
    std::span<const std::uint32_t> block;
    std::span<const std::uint64_t> place;   // equal for the same part of a block
    std::span<const std::uint8_t> access;   // bits of Access
    std::span<const std::uint32_t> unseen;  // works until then whose accesses are unknown
};

// Blocks of memory: what they contain before any access, equal for equal content, and the unseen
// works until they exist.
struct Contents {
    std::span<const std::uint64_t> value;
    std::span<const std::uint32_t> unseen;
};

// A number for each work, equal for works that compute the same values: those of an equal
// `function` that read equal values. One of function 0 computes what no other does. Throws
// std::invalid_argument for columns of different lengths, and works or blocks that do not exist.
[[nodiscard]] LongColumn<std::uint64_t> value_numbers(std::span<const std::uint64_t> function,
                                                      const Contents& blocks,
                                                      const Accesses& accesses);

}  // namespace gpuviz::analysis
