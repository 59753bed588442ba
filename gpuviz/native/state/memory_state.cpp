#include "state/memory_state.hpp"

#include <algorithm>
#include <array>

namespace gpuviz::state {

namespace {

using Levels = std::array<std::int64_t, 6>;

// Of the state while a peak is sought, at most.
constexpr std::size_t copies = 16;

Levels levels_of(const DeviceMemory& memory) {
    const auto all = [&](Quantity quantity) {
        return memory.totals().of(quantity, PoolKind::all).current;
    };
    return {all(Quantity::requested_bytes),      all(Quantity::allocated_bytes),
            all(Quantity::active_bytes),         all(Quantity::reserved_bytes),
            all(Quantity::inactive_split_bytes), memory.largest_free(PoolKind::all)};
}

// Reserves address space only; memory is used when it is written.
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

std::optional<DeviceEvent> event_of(const MemoryColumns& events, std::size_t row) {
    const std::int8_t action = events.action[row];
    const std::int64_t size = events.size[row];
    const std::int64_t requested_size = events.requested_size[row];
    const bool is_known = action >= 0 && action < std::int8_t(record::action_count);
    if (!is_known || size < 0 || requested_size < 0 || events.device[row] < 0) return std::nullopt;
    return DeviceEvent{
        .time_ns = events.time[row],
        .address = events.address[row],
        .size = static_cast<std::uint64_t>(size),
        .requested_size = static_cast<std::uint64_t>(requested_size),
        .stream = events.stream[row],
        .pool = events.pool[row],
        .stack = events.stack[row],
        .thread = events.thread[row],
        .framework = static_cast<record::Framework>(events.framework[row]),
        .action = static_cast<record::Action>(action),
    };
}

const DeviceMemory* MemoryState::apply_row(const MemoryColumns& events, std::size_t row) {
    const auto event = event_of(events, row);
    if (!event) {
        ++anomalies_;
        return nullptr;
    }
    DeviceMemory& memory = devices_[events.device[row]];
    memory.apply(*event);
    return &memory;
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
        const DeviceMemory* memory = apply_row(events, row);
        if (memory == nullptr) continue;
        const std::int16_t device = events.device[row];
        const Levels levels = levels_of(*memory);
        Levels& last_levels = before[device];
        if (levels == last_levels) continue;
        last_levels = levels;
        append(table, events.time[row], device, levels);
    }
    return table;
}

std::optional<MemoryPeak> MemoryState::apply_up_to_peak(const MemoryColumns& events,
                                                        std::size_t first, std::size_t last,
                                                        std::optional<std::int16_t> device) {
    if (first < last && !std::ranges::is_sorted(events.time.subspan(first, last - first))) {
        return std::nullopt;
    }
    const auto bytes_of = [](const DeviceMemory& memory, Quantity quantity) {
        return memory.totals().of(quantity, PoolKind::all).current;
    };
    MemoryPeak peak{first, 0, 0};
    for (const auto& [each, memory] : devices_) {
        if (device && each != *device) continue;
        peak.allocated += bytes_of(memory, Quantity::allocated_bytes);
        peak.reserved += bytes_of(memory, Quantity::reserved_bytes);
    }
    MemoryPeak now = peak;
    const auto apply_one = [&](MemoryState& state, std::size_t row) {
        if (device && events.device[row] != *device) {
            state.apply_row(events, row);
            return;
        }
        const auto memory = state.devices_.find(events.device[row]);
        const bool is_new = memory == state.devices_.end();
        const auto allocated = is_new ? 0 : bytes_of(memory->second, Quantity::allocated_bytes);
        const auto reserved = is_new ? 0 : bytes_of(memory->second, Quantity::reserved_bytes);
        if (state.apply_row(events, row) == nullptr) return;
        const auto& after = is_new ? state.devices_.at(events.device[row]) : memory->second;
        now.allocated += bytes_of(after, Quantity::allocated_bytes) - allocated;
        now.reserved += bytes_of(after, Quantity::reserved_bytes) - reserved;
        if (now.allocated > peak.allocated) peak = {row + 1, now.allocated, now.reserved};
    };
    // Where the peak is turns out at the end, so the state runs ahead, and the part with the peak
    // is applied again to the copy from before that part.
    MemoryState ahead = *this;
    std::size_t applied = first;
    std::size_t row = first;
    while (row < last) {
        MemoryState before = ahead;
        const std::size_t begin = row;
        const std::size_t length = std::max((last - first) / copies + 1, ahead.block_count());
        const std::size_t end = begin + std::min(last - begin, length);
        for (; row < end; ++row) apply_one(ahead, row);
        if (peak.rows > begin) {
            *this = std::move(before);
            applied = begin;
        }
    }
    apply(events, applied, peak.rows);
    return peak;
}

void MemoryState::append_levels(std::int64_t time_ns, MemoryLevels& levels) const {
    for (const auto& [device, memory] : devices_)
        append(levels, time_ns, device, levels_of(memory));
}

void MemoryState::forget_the_past() noexcept {
    for (auto& [device, memory] : devices_) memory.forget_the_past();
}

std::size_t MemoryState::block_count() const noexcept {
    std::size_t total = 0;
    for (const auto& [device, memory] : devices_) total += memory.blocks().size();
    return total;
}

std::int64_t MemoryState::anomalies() const noexcept {
    std::int64_t total = anomalies_;
    for (const auto& [device, memory] : devices_) total += memory.anomalies();
    return total;
}

}  // namespace gpuviz::state
