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

// Totals of the values of each group; least and greatest are 0 for an empty one. Sums wrap.
struct GroupTotals {
    std::vector<std::int64_t> count;
    std::vector<std::int64_t> sum;
    std::vector<std::int64_t> least;
    std::vector<std::int64_t> greatest;
};

// Of values that belong to groups below `groups`.
[[nodiscard]] GroupTotals group_totals(std::span<const std::uint32_t> group,
                                       std::span<const std::int64_t> values, std::size_t groups);

// The same for medians, which cost more; between two values, rounded down.
[[nodiscard]] std::vector<std::int64_t> group_medians(std::span<const std::uint32_t> group,
                                                      std::span<const std::int64_t> values,
                                                      std::size_t groups);

}  // namespace gpuviz::analysis
