#include "state/memory_state.hpp"

#include <algorithm>
#include <array>

namespace gpuviz::state {

namespace {

using Levels = std::array<std::int64_t, 6>;

Levels levels_of(const DeviceMemory& memory) noexcept {
    const auto all = [&](Quantity quantity) {
        return memory.totals().of(quantity, PoolKind::all).current;
    };
    return {all(Quantity::requested_bytes),      all(Quantity::allocated_bytes),
            all(Quantity::active_bytes),         all(Quantity::reserved_bytes),
            all(Quantity::inactive_split_bytes), memory.largest_free(PoolKind::all)};
}

// Of address space only: what is not written to takes no memory.
void reserve(MemoryLevels& table, std::size_t rows) {
    table.time.reserve(rows);
    table.device.reserve(rows);
    for (auto* column : {&table.requested, &table.allocated, &table.active, &table.reserved,
                         &table.inactive_split, &table.largest_free}) {
        column->reserve(rows);
    }
}

void append(MemoryLevels& table, std::int64_t time_ns, std::int16_t device, const Levels& levels) {
    table.time.push_back(time_ns);
    table.device.push_back(device);
    table.requested.push_back(levels[0]);
    table.allocated.push_back(levels[1]);
    table.active.push_back(levels[2]);
    table.reserved.push_back(levels[3]);
    table.inactive_split.push_back(levels[4]);
    table.largest_free.push_back(levels[5]);
}

}  // namespace

bool MemoryState::apply_row(const MemoryColumns& events, std::size_t row) {
    const std::int8_t action = events.action[row];
    const std::int64_t size = events.size[row];
    const std::int64_t requested_size = events.requested_size[row];
    const bool is_known = action >= 0 && action <= static_cast<std::int8_t>(record::last_action);
    if (!is_known || size < 0 || requested_size < 0 || events.device[row] < 0) {
        ++anomalies_;
        return false;
    }
    devices_[events.device[row]].apply({
        .time_ns = events.time[row],
        .address = events.address[row],
        .size = static_cast<std::uint64_t>(size),
        .requested_size = static_cast<std::uint64_t>(requested_size),
        .stream = events.stream[row],
        .pool = events.pool[row],
        .stack = events.stack[row],
        .thread = events.thread[row],
        .action = static_cast<record::Action>(action),
    });
    return true;
}

void MemoryState::apply(const MemoryColumns& events, std::size_t first, std::size_t last,
                        std::int64_t until_ns) {
    for (std::size_t row = first; row < last; ++row) {
        if (events.time[row] <= until_ns) apply_row(events, row);
    }
}

MemoryLevels MemoryState::apply_with_levels(const MemoryColumns& events, std::size_t first,
                                            std::size_t last) {
    std::map<std::int16_t, Levels> before;
    for (const auto& [device, memory] : devices_) before[device] = levels_of(memory);
    MemoryLevels table;
    reserve(table, last - std::min(first, last));
    for (std::size_t row = first; row < last; ++row) {
        if (!apply_row(events, row)) continue;
        const std::int16_t device = events.device[row];
        const Levels levels = levels_of(devices_[device]);
        Levels& last_levels = before[device];
        if (levels == last_levels) continue;
        last_levels = levels;
        append(table, events.time[row], device, levels);
    }
    return table;
}

void MemoryState::append_levels(std::int64_t time_ns, MemoryLevels& levels) const {
    for (const auto& [device, memory] : devices_)
        append(levels, time_ns, device, levels_of(memory));
}

void MemoryState::forget_the_past() noexcept {
    for (auto& [device, memory] : devices_) memory.forget_the_past();
}

std::int64_t MemoryState::anomalies() const noexcept {
    std::int64_t total = anomalies_;
    for (const auto& [device, memory] : devices_) total += memory.anomalies();
    return total;
}

}  // namespace gpuviz::state
