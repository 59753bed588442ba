#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/trace_rows.hpp"

namespace gpuviz::formats {

struct TraceRow {
    std::int64_t time;
    std::int64_t end;
    std::uint32_t table;
    std::uint32_t row;
};

// The rows of all tables, ordered by start time. At equal times rows of duration 0 come first, then
// longer rows before shorter ones, and of equal ones those that contain others.
[[nodiscard]] std::vector<TraceRow> rows_by_time(std::span<const TraceRows> tables);

// The start or end of a row.
struct TraceStep {
    std::uint32_t table;
    std::uint32_t row;
    bool is_end;
};

// All starts of rows and, except for instants, all ends, ordered by time. At equal times ends come
// first, inner rows first; then rows of duration 0, each with its end; then starts, outer rows
// first. If rows are on lanes, each end is that of the last row started on its track.
[[nodiscard]] std::vector<TraceStep> trace_steps(std::span<const TraceRows> tables);

}  // namespace gpuviz::formats
