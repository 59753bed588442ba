#pragma once

#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// Constraints between moments: `target` is at least `lag` after `source`.
struct Constraints {
    std::span<const std::uint32_t> source;
    std::span<const std::uint32_t> target;  // ascending
    std::span<const std::int64_t> lag;
};

// The earliest time of each moment under all constraints, and not before `not_before`. Throws
// std::invalid_argument unless each source precedes its target and is one of the moments.
[[nodiscard]] LongColumn<std::int64_t> earliest_times(std::span<const std::int64_t> not_before,
                                                      const Constraints& constraints);

}  // namespace gpuviz::analysis
