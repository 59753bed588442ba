#include "state/lifetimes.hpp"

#include <algorithm>

namespace gpuviz::state {

Lifetimes lifetimes(const MemoryColumns& events, std::size_t initial_events, std::int16_t device) {
    const auto rows = static_cast<std::int64_t>(events.count());
    const auto initial = static_cast<std::int64_t>(initial_events);
    std::vector<std::int64_t> end_of(events.count(), 0);  // 0: the row allocated no block
    std::vector<std::int64_t> free_of(events.count(), rows);
    std::vector<std::int64_t> requested;
    std::vector<std::int64_t> completed;
    DeviceMemory memory;
    memory.report_frees(requested, completed);
    for (std::size_t row = 0; row < events.count(); ++row) {
        auto event = event_of(events, row);
        if (!event || events.device[row] != device) continue;
        const auto number = static_cast<std::int64_t>(row);
        event->time_ns = number;
        const auto before = memory.totals().of(Quantity::allocation, PoolKind::all).allocated;
        memory.apply(*event);
        const auto after = memory.totals().of(Quantity::allocation, PoolKind::all).allocated;
        if (after != before) end_of[row] = rows;
        for (const std::int64_t begin : requested)
            free_of[static_cast<std::size_t>(begin)] = number;
        for (const std::int64_t begin : completed) end_of[static_cast<std::size_t>(begin)] = number;
        requested.clear();
        completed.clear();
    }
    Lifetimes found;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t end = end_of[static_cast<std::size_t>(row)];
        if (end <= row || (row < initial && end < initial)) continue;
        found.begin.push_back(row);
        found.free.push_back(free_of[static_cast<std::size_t>(row)]);
        found.end.push_back(end);
    }
    return found;
}

}  // namespace gpuviz::state
