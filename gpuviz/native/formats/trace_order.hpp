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

// The rows of all tables by time. Of those that begin at one time first come those that take none,
// then longer ones before shorter ones, and of equal ones those that contain others.
[[nodiscard]] std::vector<TraceRow> rows_by_time(std::span<const TraceRows> tables);

// A row begins, or ends.
struct TraceStep {
    std::uint32_t table;
    std::uint32_t row;
    bool is_end;
};

// Every begin of a row and, unless it is an instant, every end, by time. Of what happens at one
// time first come ends, inner rows first; then rows that take no time, each with its end; then
// begins, outer rows first. With rows on lanes, each end is that of the last row begun on its
// track.
[[nodiscard]] std::vector<TraceStep> trace_steps(std::span<const TraceRows> tables);

}  // namespace gpuviz::formats
