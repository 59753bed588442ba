#pragma once

#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// Begins and ends of intervals in ns, of equal length.
struct IntervalRows {
    std::span<const std::int64_t> begin;
    std::span<const std::int64_t> end;
};

// How much of each wanted interval is covered by parts, which are ascending.
[[nodiscard]] LongColumn<std::int64_t> covered(const IntervalRows& parts,
                                               const IntervalRows& wanted);

}  // namespace gpuviz::analysis
