#include "analysis/line_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace gpuviz::analysis {

LineRuns line_runs(const CausedRows& rows, std::span<const std::int64_t> order) {
    const auto is_row = [&](std::int64_t each) {
        return each >= 0 && static_cast<std::size_t>(each) < rows.time.size();
    };
    if (!std::ranges::all_of(order, is_row)) {
        throw std::invalid_argument("the order must be of rows that exist");
    }
    LineRuns found{{rows.time.begin(), rows.time.end()}, {rows.end.begin(), rows.end.end()}};
    std::vector<std::size_t> run;
    const auto close = [&] {
        if (run.size() > 1) {
            std::int64_t begin = found.begin[run.front()];
            std::int64_t end = found.end[run.front()];
            for (const std::size_t row : run) {
                begin = std::min(begin, found.begin[row]);
                end = std::max(end, found.end[row]);
            }
            for (const std::size_t row : run) found.begin[row] = begin, found.end[row] = end;
        }
        run.clear();
    };
    for (const std::int64_t each : order) {
        const auto row = static_cast<std::size_t>(each);
        if (rows.stack[row] == 0) continue;
        const bool is_same = !run.empty() && rows.thread[row] == rows.thread[run.back()] &&
                             rows.line[row] == rows.line[run.back()];
        if (!is_same) close();
        run.push_back(row);
    }
    close();
    return found;
}

}  // namespace gpuviz::analysis
