#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// Numbers for 64-bit keys, in the order of first occurrence.
struct Numbering {
    LongColumn<std::uint32_t> numbers;     // of each row
    LongColumn<std::uint32_t> first_rows;  // of each number
    LongColumn<std::int64_t> counts;       // of rows with each number
};

// Numbers the pairs of two 32-bit columns of equal length.
[[nodiscard]] Numbering numbered(std::span<const std::uint32_t> high,
                                 std::span<const std::uint32_t> low);

// Aggregates of the values of each group; least and greatest are 0 for an empty group. Sums wrap.
struct GroupTotals {
    std::vector<std::int64_t> count;
    std::vector<std::int64_t> sum;
    std::vector<std::int64_t> least;
    std::vector<std::int64_t> greatest;
};

// Aggregates the values of groups 0 to `groups` - 1.
[[nodiscard]] GroupTotals group_totals(std::span<const std::uint32_t> group,
                                       std::span<const std::int64_t> values, std::size_t groups);

// The median of each group, which costs more; rounded down if between two values.
[[nodiscard]] std::vector<std::int64_t> group_medians(std::span<const std::uint32_t> group,
                                                      std::span<const std::int64_t> values,
                                                      std::size_t groups);

// Four columns of equal length; the first is the group of each row.
using KeyColumns = std::array<std::span<const std::uint32_t>, 4>;

// The first row of each group with the group's most frequent combination of the other columns; of
// equally frequent ones, of the one that occurs first. 0 for an empty group.
[[nodiscard]] std::vector<std::int64_t> typical_rows(const KeyColumns& columns, std::size_t groups);

}  // namespace gpuviz::analysis
