#include "formats/trace_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

namespace gpuviz::formats {

std::vector<TraceRow> rows_by_time(std::span<const TraceRows> tables) {
    std::vector<TraceRow> rows;
    std::size_t count = 0;
    for (const TraceRows& table : tables) count += table.size();
    rows.reserve(count);
    for (std::uint32_t number = 0; number < tables.size(); ++number) {
        const TraceRows& table = tables[number];
        for (std::uint32_t row = 0; row < table.size(); ++row) {
            rows.push_back({table.time[row], table.end[row], number, row});
        }
    }
    const auto key = [&](const TraceRow& row) {
        return std::tuple(row.time, row.end != row.time, -row.end, !tables[row.table].contains,
                          row.table, row.row);
    };
    std::sort(rows.begin(), rows.end(),
              [&](const TraceRow& left, const TraceRow& right) { return key(left) < key(right); });
    return rows;
}

std::vector<TraceStep> trace_steps(std::span<const TraceRows> tables) {
    const std::vector<TraceRow> rows = rows_by_time(tables);
    std::vector<std::uint32_t> ends;
    for (std::uint32_t position = 0; position < rows.size(); ++position) {
        if (rows[position].end != rows[position].time) ends.push_back(position);
    }
    std::sort(ends.begin(), ends.end(), [&](std::uint32_t left, std::uint32_t right) {
        return std::tuple(rows[left].end, right) < std::tuple(rows[right].end, left);
    });
    std::vector<TraceStep> steps;
    steps.reserve(2 * rows.size());
    auto next_end = ends.begin();
    const auto end_until = [&](std::int64_t time) {
        for (; next_end != ends.end() && rows[*next_end].end <= time; ++next_end) {
            steps.push_back({rows[*next_end].table, rows[*next_end].row, true});
        }
    };
    for (const TraceRow& row : rows) {
        end_until(row.time);
        steps.push_back({row.table, row.row, false});
        if (row.end == row.time && !tables[row.table].instant) {
            steps.push_back({row.table, row.row, true});
        }
    }
    if (!rows.empty()) end_until(rows[ends.empty() ? 0 : ends.back()].end);
    return steps;
}

}  // namespace gpuviz::formats
