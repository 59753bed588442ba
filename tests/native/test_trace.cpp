// Random rows for trace viewers: rows on one lane are nested, and every end has its begin.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check.hpp"
#include "formats/chrome_events.hpp"
#include "formats/perfetto_events.hpp"
#include "formats/trace_lanes.hpp"
#include "formats/trace_order.hpp"

namespace {

using gpuviz::formats::TraceRows;

constexpr std::uint32_t lanes_of_a_track = 1'000'000;

struct Table {
    std::vector<std::int64_t> time, end, argument;
    std::vector<std::uint32_t> track, name, flow_count;
    std::vector<std::uint64_t> flow, first_flow;
    bool contains, instant;

    Table(std::mt19937_64& random, std::size_t rows)
        : contains(random() % 2 == 0), instant(random() % 5 == 0) {
        const auto below = [&](std::uint64_t bound) { return random() % bound; };
        for (std::size_t row = 0; row < rows; ++row) {
            time.push_back(static_cast<std::int64_t>(below(50)) - 10);
            end.push_back(time.back() + (instant ? 0 : static_cast<std::int64_t>(below(9))));
            argument.push_back(static_cast<std::int64_t>(below(4)) - 1);
            track.push_back(static_cast<std::uint32_t>(below(3)));
            name.push_back(static_cast<std::uint32_t>(below(2)));
            flow.push_back(below(3));
            first_flow.push_back(below(9) + 1);
            flow_count.push_back(static_cast<std::uint32_t>(below(3)));
        }
    }

    [[nodiscard]] TraceRows rows() const {
        return {.category = 0,
                .contains = contains,
                .instant = instant,
                .time = time,
                .end = end,
                .track = track,
                .name = name,
                .flow = flow,
                .first_flow = first_flow,
                .flow_count = flow_count,
                .arguments = {{0, true, argument}, {1, false, argument}}};
    }
};

std::vector<TraceRows> rows_of(const std::vector<Table>& tables) {
    std::vector<TraceRows> rows;
    for (const Table& table : tables) rows.push_back(table.rows());
    return rows;
}

void move_to_lanes(std::vector<Table>& tables) {
    const auto lanes = gpuviz::formats::trace_lanes(rows_of(tables));
    for (std::size_t number = 0; number < tables.size(); ++number) {
        for (std::size_t row = 0; row < lanes[number].size(); ++row) {
            tables[number].track[row] += lanes_of_a_track * lanes[number][row];
        }
    }
}

void check_steps(const std::vector<TraceRows>& tables) {
    using Place = std::pair<std::uint32_t, std::uint32_t>;
    std::unordered_map<std::uint32_t, std::vector<Place>> open;
    std::int64_t now = -100;
    std::size_t begins = 0;
    for (const auto& step : gpuviz::formats::trace_steps(tables)) {
        const TraceRows& table = tables[step.table];
        const std::int64_t time = step.is_end ? table.end[step.row] : table.time[step.row];
        CHECK_EQUAL(now <= time, true);
        now = time;
        auto& stack = open[table.track[step.row]];
        if (step.is_end) {
            CHECK_EQUAL(stack.empty(), false);
            CHECK_EQUAL((stack.back() == Place{step.table, step.row}), true);
            stack.pop_back();
            continue;
        }
        ++begins;
        if (table.instant) continue;
        if (!stack.empty()) CHECK_EQUAL(tables[stack.back().first].contains, true);
        stack.emplace_back(step.table, step.row);
    }
    std::size_t rows = 0;
    for (const TraceRows& table : tables) rows += table.size();
    CHECK_EQUAL(begins, rows);
    for (const auto& [track, stack] : open) CHECK_EQUAL(stack.empty(), true);
}

void check_writers(const std::vector<Table>& tables) {
    std::string written;
    const gpuviz::formats::TraceSink sink = [&](std::string_view piece) { written.append(piece); };
    gpuviz::formats::write_perfetto_rows(rows_of(tables), {1, 100}, sink);
    CHECK_EQUAL(written.empty(), tables.empty() || tables.front().time.empty());
    written.clear();
    const std::vector<gpuviz::formats::ChromeTrack> tracks(3, {1, 2});
    const gpuviz::formats::ChromeTexts texts{
        {"\"a\"", "\"b\""}, {"\"c\"", "\"d\""}, {"1", "2", "3"}};
    gpuviz::formats::write_chrome_rows(rows_of(tables), tracks, texts, sink);
    CHECK_EQUAL(written.empty(), tables.empty() || tables.front().time.empty());
}

void check_many_lanes() {
    std::mt19937_64 random(3);
    std::vector<Table> tables{Table(random, 0)};
    Table& table = tables.front();
    table.instant = table.contains = false;
    constexpr std::uint32_t rows = 3000;
    for (std::uint32_t row = 0; row < rows; ++row) {
        table.time.push_back(row);
        table.end.push_back(std::int64_t{row} + rows);
        table.argument.push_back(0);
        table.track.push_back(0);
        table.name.push_back(0);
        table.flow.push_back(0);
        table.first_flow.push_back(0);
        table.flow_count.push_back(0);
    }
    const auto lanes = gpuviz::formats::trace_lanes(rows_of(tables));
    CHECK_EQUAL(lanes.front().back(), rows - 1);
}

}  // namespace

int main() {
    std::mt19937_64 random(1);
    for (std::size_t rows = 0; rows < 60; ++rows) {
        for (std::size_t round = 0; round < 5; ++round) {
            std::vector<Table> tables;
            for (std::size_t table = 0; table < round; ++table) tables.emplace_back(random, rows);
            check_writers(tables);
            move_to_lanes(tables);
            check_steps(rows_of(tables));
        }
    }
    check_many_lanes();
}
