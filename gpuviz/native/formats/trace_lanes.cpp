#include "formats/trace_lanes.hpp"

#include <cstddef>
#include <unordered_map>

#include "formats/trace_order.hpp"

namespace gpuviz::formats {

namespace {

constexpr std::size_t lanes_looked_through = 1024;

struct OpenRow {
    std::int64_t end;
    bool contains;
};

// The open rows of one lane, innermost last.
class Lane {
  public:
    // Adds the row if it fits after or into the open rows. Rows are in the order of `rows_by_time`.
    bool take(std::int64_t time, std::int64_t end, bool contains) {
        while (!open_.empty() && open_.back().end <= time) open_.pop_back();
        if (!open_.empty() && (!open_.back().contains || open_.back().end < end)) return false;
        open_.push_back({end, contains});
        return true;
    }

  private:
    std::vector<OpenRow> open_;
};

std::size_t lane_of(std::vector<Lane>& lanes, const TraceRow& row, bool contains) {
    const std::size_t first =
        lanes.size() > lanes_looked_through ? lanes.size() - lanes_looked_through : 0;
    for (std::size_t number = first; number < lanes.size(); ++number) {
        if (lanes[number].take(row.time, row.end, contains)) return number;
    }
    lanes.emplace_back().take(row.time, row.end, contains);
    return lanes.size() - 1;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> trace_lanes(std::span<const TraceRows> tables) {
    std::vector<std::vector<std::uint32_t>> numbers;
    for (const TraceRows& table : tables) numbers.emplace_back(table.size(), 0U);
    std::unordered_map<std::uint32_t, std::vector<Lane>> lanes_of_track;
    for (const TraceRow& row : rows_by_time(tables)) {
        const TraceRows& table = tables[row.table];
        if (table.instant) continue;
        auto& lanes = lanes_of_track[table.track[row.row]];
        numbers[row.table][row.row] =
            static_cast<std::uint32_t>(lane_of(lanes, row, table.contains));
    }
    return numbers;
}

}  // namespace gpuviz::formats
