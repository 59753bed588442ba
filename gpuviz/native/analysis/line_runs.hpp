#pragma once

#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// Columns of what lines of the program caused, of equal length.
struct CausedRows {
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;
    std::span<const std::uint32_t> thread;
    std::span<const std::uint32_t> stack;  // 0 if unknown
    std::span<const std::uint32_t> line;   // equal for the same line
};

// Times in ns, one for each row.
struct LineRuns {
    LongColumn<std::int64_t> begin;
    LongColumn<std::int64_t> end;
};

// When the run of each row began and ended: the rows with a stack that follow each other in
// `order`, which is by thread, and are of the same thread and line. A row without a stack is a run
// of its own. Throws std::invalid_argument for an order of rows that do not exist.
[[nodiscard]] LineRuns line_runs(const CausedRows& rows, std::span<const std::int64_t> order);

}  // namespace gpuviz::analysis
