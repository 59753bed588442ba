#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpuviz::analysis {

// Numbers for keys of 64 bits, counted up as the keys first come.
struct Numbering {
    std::vector<std::uint32_t> numbers;     // of each row
    std::vector<std::uint32_t> first_rows;  // of each number
    std::vector<std::int64_t> counts;       // of rows with each number
};

// Numbers the pairs that two columns of one length make; of 32 bits each.
[[nodiscard]] Numbering numbered(std::span<const std::uint32_t> high,
                                 std::span<const std::uint32_t> low);

// Sums and the like of the values of each group.
struct GroupValues {
    std::vector<std::int64_t> count;
    std::vector<std::int64_t> sum;
    std::vector<std::int64_t> least;
    std::vector<std::int64_t> greatest;
    std::vector<std::int64_t> median;  // between two values, rounded down
};

// Of values that belong to groups below `groups`; all but the sum and count are 0 for an empty
// group. Sums wrap.
[[nodiscard]] GroupValues group_values(std::span<const std::uint32_t> group,
                                       std::span<const std::int64_t> values, std::size_t groups);

}  // namespace gpuviz::analysis
