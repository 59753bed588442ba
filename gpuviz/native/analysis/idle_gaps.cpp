#include "analysis/idle_gaps.hpp"

#include "analysis/idle_causes.hpp"
#include "analysis/lanes.hpp"

namespace gpuviz::analysis {

namespace {

constexpr std::int32_t no_activity = -1;
constexpr std::uint32_t unknown_stream = 0;

void truncate(IdleGaps& table, std::size_t rows) {
    table.device.resize(rows);
    table.stream.resize(rows);
    table.time.resize(rows);
    table.end.resize(rows);
    table.cause.resize(rows);
    table.activity.resize(rows);
}

// Returns whether all rows of the lane fit.
bool append_lane(const ActivityRows& activities, const IdleCauses& causes, const LaneRows& lane,
                 Interval window, std::size_t most_rows, IdleGaps& table) {
    std::vector<IdlePart> parts;
    IdleCauses::Place place;
    const auto append = [&](Interval gap, std::optional<std::size_t> next) {
        parts.clear();
        causes.append_parts(gap, next, most_rows + 1 - table.time.size(), place, parts);
        for (const IdlePart& part : parts) {
            table.device.push_back(lane.device);
            table.stream.push_back(lane.stream.value_or(0));
            table.time.push_back(part.time.begin);
            table.end.push_back(part.time.end);
            table.cause.push_back(static_cast<std::uint8_t>(part.cause));
            table.activity.push_back(next ? static_cast<std::int32_t>(*next) : no_activity);
        }
        return table.time.size() <= most_rows;
    };
    for_each_gap(activities, lane.rows, window, append);
    return table.time.size() <= most_rows;
}

}  // namespace

IdleGaps idle_gaps(const ActivityRows& activities, const HostCallRows& calls,
                   const SynchronizationRows& synchronizations, std::size_t most_rows,
                   std::optional<std::int64_t> window_begin,
                   std::optional<std::int64_t> window_end) {
    const IdleCauses causes(activities, calls, synchronizations);
    IdleGaps table;
    Interval window;
    for (const LaneRows& lane : causes.lanes()) {
        if (!lane.stream) window = window_of(activities, lane.rows, window_begin, window_end);
        if (lane.stream == unknown_stream) continue;
        const std::size_t before = table.time.size();
        if (!append_lane(activities, causes, lane, window, most_rows, table)) {
            truncate(table, before);
            break;
        }
    }
    return table;
}

}  // namespace gpuviz::analysis
