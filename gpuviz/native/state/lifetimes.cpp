#include "state/lifetimes.hpp"

#include <algorithm>

namespace gpuviz::state {

Lifetimes lifetimes(const MemoryColumns& events, std::size_t initial_events, std::int16_t device) {
    const auto rows = static_cast<std::int64_t>(events.count());
    const auto initial = static_cast<std::int64_t>(initial_events);
    std::vector<std::int64_t> end_of(events.count(), 0);  // 0: the row allocated no block
    std::vector<std::int64_t> ended;
    DeviceMemory memory;
    memory.report_ends(ended);
    for (std::size_t row = 0; row < events.count(); ++row) {
        auto event = event_of(events, row);
        if (!event || events.device[row] != device) continue;
        event->time_ns = static_cast<std::int64_t>(row);
        const auto before = memory.totals().of(Quantity::allocation, PoolKind::all).allocated;
        memory.apply(*event);
        const auto after = memory.totals().of(Quantity::allocation, PoolKind::all).allocated;
        if (after != before) end_of[row] = rows;
        for (const std::int64_t begin : ended) {
            end_of[static_cast<std::size_t>(begin)] = static_cast<std::int64_t>(row);
        }
        ended.clear();
    }
    Lifetimes found;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t end = end_of[static_cast<std::size_t>(row)];
        if (end <= row || (row < initial && end < initial)) continue;
        found.begin.push_back(row);
        found.end.push_back(end);
    }
    return found;
}

}  // namespace gpuviz::state
