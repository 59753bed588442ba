#include "state/memory_state.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"
#include "state/free_levels.hpp"
#include "state/lifetimes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

// So few are applied in less than a millisecond.
constexpr std::size_t few_events = 4096;

using Statistics = nb::typed<nb::dict, nb::str, std::int64_t>;

// Keeps the arrays alive that its spans look at.
struct EventColumns {
    state::MemoryColumns columns;
    ColumnViews views;

    [[nodiscard]] std::size_t end(std::optional<std::size_t> last) const {
        return std::min(last.value_or(columns.count()), columns.count());
    }
};

Columns levels_dict(state::MemoryLevels levels) {
    Columns columns;
    columns["time"] = to_numpy(std::move(levels.time));
    columns["device"] = to_numpy(std::move(levels.device));
    columns["requested"] = to_numpy(std::move(levels.requested));
    columns["allocated"] = to_numpy(std::move(levels.allocated));
    columns["active"] = to_numpy(std::move(levels.active));
    columns["reserved"] = to_numpy(std::move(levels.reserved));
    columns["inactive_split"] = to_numpy(std::move(levels.inactive_split));
    columns["largest_free"] = to_numpy(std::move(levels.largest_free));
    return columns;
}

Columns free_levels(state::FreeLevels& followed, const EventColumns& events) {
    std::vector<state::FreeLevel> rows;
    {
        const python::GilRelease unlocked;
        rows = followed.add(events.columns);
    }
    Columns columns;
    columns["device"] = to_numpy(rows, [](const state::FreeLevel& r) { return r.device; });
    columns["event"] = to_numpy(rows, [](const state::FreeLevel& r) { return r.event; });
    columns["largest"] = to_numpy(rows, [](const state::FreeLevel& r) { return r.largest; });
    columns["outside"] = to_numpy(rows, [](const state::FreeLevel& r) { return r.outside; });
    return columns;
}

struct SegmentRow {
    std::int16_t device;
    std::uint64_t address;
    state::Segment segment;
};

Columns segments_dict(const state::MemoryState& state) {
    std::vector<SegmentRow> rows;
    for (const auto& [device, memory] : state.devices()) {
        for (const auto& [address, segment] : memory.segments()) {
            rows.push_back({device, address, segment});
        }
    }
    Columns columns;
    columns["device"] = to_numpy(rows, [](const SegmentRow& r) { return r.device; });
    columns["address"] = to_numpy(rows, [](const SegmentRow& r) { return r.address; });
    columns["size"] = to_numpy(rows, [](const SegmentRow& r) { return r.segment.size; });
    columns["time"] = to_numpy(rows, [](const SegmentRow& r) { return r.segment.time_ns; });
    columns["stream"] = to_numpy(rows, [](const SegmentRow& r) { return r.segment.stream; });
    columns["pool"] = to_numpy(rows, [](const SegmentRow& r) { return r.segment.pool; });
    columns["stack"] = to_numpy(rows, [](const SegmentRow& r) { return r.segment.stack; });
    columns["is_expandable"] = to_numpy(rows, [](const SegmentRow& r) {
        return static_cast<std::uint8_t>(r.segment.is_expandable);
    });
    return columns;
}

struct BlockRow {
    std::int16_t device;
    std::int64_t segment;  // row of segments, -1: outside every known one
    std::uint64_t address;
    state::Block block;
};

std::vector<BlockRow> block_rows(const state::MemoryState& state) {
    std::vector<BlockRow> rows;
    std::int64_t first_segment = 0;
    for (const auto& [device, memory] : state.devices()) {
        std::int64_t index = first_segment;
        auto segment = memory.segments().begin();
        for (const auto& [address, block] : memory.blocks()) {
            while (segment != memory.segments().end() &&
                   segment->first + segment->second.size <= address) {
                ++segment;
                ++index;
            }
            rows.push_back({device, block.has_segment() ? index : -1, address, block});
        }
        first_segment += static_cast<std::int64_t>(memory.segments().size());
    }
    return rows;
}

Columns blocks_dict(const state::MemoryState& state) {
    const auto rows = block_rows(state);
    Columns columns;
    columns["device"] = to_numpy(rows, [](const BlockRow& r) { return r.device; });
    columns["segment"] = to_numpy(rows, [](const BlockRow& r) { return r.segment; });
    columns["address"] = to_numpy(rows, [](const BlockRow& r) { return r.address; });
    columns["size"] = to_numpy(rows, [](const BlockRow& r) { return r.block.size; });
    columns["requested_size"] =
        to_numpy(rows, [](const BlockRow& r) { return r.block.requested_size; });
    columns["state"] =
        to_numpy(rows, [](const BlockRow& r) { return static_cast<std::uint8_t>(r.block.state); });
    columns["stream"] = to_numpy(rows, [](const BlockRow& r) { return r.block.stream; });
    columns["pool"] = to_numpy(rows, [](const BlockRow& r) { return r.block.pool; });
    columns["stack"] = to_numpy(rows, [](const BlockRow& r) { return r.block.stack; });
    columns["thread"] = to_numpy(rows, [](const BlockRow& r) { return r.block.thread; });
    columns["framework"] = to_numpy(
        rows, [](const BlockRow& r) { return static_cast<std::int8_t>(r.block.framework); });
    columns["time"] = to_numpy(rows, [](const BlockRow& r) { return r.block.time_ns; });
    return columns;
}

Statistics statistics_dict(const state::MemoryState& state, std::int16_t device) {
    static const state::MemoryTotals nothing;
    const auto memory = state.devices().find(device);
    const auto& totals = memory == state.devices().end() ? nothing : memory->second.totals();
    Statistics statistics;
    for (std::size_t q = 0; q < state::quantity_names.size(); ++q) {
        for (std::size_t k = 0; k < state::pool_kind_names.size(); ++k) {
            const auto& stat = totals.of(state::Quantity(q), state::PoolKind(k));
            const std::string prefix = std::string(state::quantity_names[q]) + "." +
                                       std::string(state::pool_kind_names[k]) + ".";
            statistics[(prefix + "allocated").c_str()] = stat.allocated;
            statistics[(prefix + "current").c_str()] = stat.current;
            statistics[(prefix + "freed").c_str()] = stat.freed;
            statistics[(prefix + "peak").c_str()] = stat.peak;
        }
    }
    statistics["num_ooms"] = totals.num_ooms;
    statistics["num_device_alloc"] = totals.num_device_alloc;
    statistics["num_device_free"] = totals.num_device_free;
    return statistics;
}

Statistics parts_dict(const state::MemoryState& state, std::int16_t device) {
    const auto memory = state.devices().find(device);
    state::MemoryParts parts;
    state::Stat allocated;
    if (memory != state.devices().end()) {
        parts = memory->second.parts();
        allocated =
            memory->second.totals().of(state::Quantity::allocated_bytes, state::PoolKind::all);
    }
    Statistics values;
    values["allocated"] = allocated.current;
    values["allocated_peak"] = allocated.peak;
    values["reserved"] = parts.reserved;
    values["free"] = parts.free;
    values["inactive_split"] = parts.inactive_split;
    values["largest_free"] = parts.largest_free;
    values["outside"] = parts.outside;
    return values;
}

void construct_columns(EventColumns* self, Column<std::int64_t> time, Column<std::int8_t> action,
                       Column<std::uint64_t> address, Column<std::int64_t> size,
                       Column<std::int64_t> requested_size, Column<std::int16_t> device,
                       Column<std::uint32_t> stream, Column<std::uint32_t> pool,
                       Column<std::uint32_t> stack, Column<std::uint32_t> thread,
                       Column<std::int8_t> framework) {
    EventColumns events;
    state::MemoryColumns& columns = events.columns;
    events.views.take("time", time, columns.time)
        .take("action", action, columns.action)
        .take("address", address, columns.address)
        .take("size", size, columns.size)
        .take("requested_size", requested_size, columns.requested_size)
        .take("device", device, columns.device)
        .take("stream", stream, columns.stream)
        .take("pool", pool, columns.pool)
        .take("stack", stack, columns.stack)
        .take("thread", thread, columns.thread)
        .take("framework", framework, columns.framework);
    new (self) EventColumns(std::move(events));
}

Columns lifetimes_of(const EventColumns& events, std::size_t initial_events, std::int16_t device) {
    state::Lifetimes found;
    {
        const python::GilRelease unlocked;
        found = state::lifetimes(events.columns, initial_events, device);
    }
    Columns columns;
    columns["begin"] = to_numpy(std::move(found.begin));
    columns["free"] = to_numpy(std::move(found.free));
    columns["end"] = to_numpy(std::move(found.end));
    return columns;
}

}  // namespace

void bind_memory_state(nb::module_& m) {
    nb::class_<EventColumns>(m, "MemoryColumns",
                             "The columns of `memory_events`, used without copying.")
        .def("__init__", &construct_columns, nb::kw_only(), "time"_a.noconvert(),
             "action"_a.noconvert(), "address"_a.noconvert(), "size"_a.noconvert(),
             "requested_size"_a.noconvert(), "device"_a.noconvert(), "stream"_a.noconvert(),
             "pool"_a.noconvert(), "stack"_a.noconvert(), "thread"_a.noconvert(),
             "framework"_a.noconvert())
        .def("__len__", [](const EventColumns& self) { return self.columns.count(); });

    nb::class_<state::MemoryState>(m, "MemoryState",
                                   "The memory of every device after the events applied so far.")
        .def(nb::init<>())
        .def(
            "apply",
            [](state::MemoryState& self, const EventColumns& events, std::size_t first,
               std::optional<std::size_t> last, std::int64_t until) {
                // A thread that computes in Python returns the GIL after 5 ms.
                std::optional<python::GilRelease> unlocked;
                if (events.columns.count() > few_events) unlocked.emplace();
                self.apply(events.columns, first, events.end(last), until);
            },
            "events"_a, "first"_a = 0, "last"_a = nb::none(),
            "until"_a = state::MemoryState::forever,
            "Apply rows [first, last) whose time is at most `until` ns.")
        .def(
            "apply_with_levels",
            [](state::MemoryState& self, const EventColumns& events, std::size_t first,
               std::optional<std::size_t> last) {
                state::MemoryLevels levels;
                {
                    const python::GilRelease released;
                    levels = self.apply_with_levels(events.columns, first, events.end(last));
                }
                return levels_dict(std::move(levels));
            },
            "events"_a, "first"_a = 0, "last"_a = nb::none(),
            "Apply rows [first, last) and return the columns of `memory_levels`: one row whenever "
            "a level changed.")
        .def(
            "apply_up_to_peak",
            [](state::MemoryState& self, const EventColumns& events, std::size_t first,
               std::optional<std::int16_t> device)
                -> std::optional<std::tuple<std::size_t, std::int64_t, std::int64_t>> {
                const python::GilRelease unlocked;
                const auto peak =
                    self.apply_up_to_peak(events.columns, first, events.end(std::nullopt), device);
                if (!peak) return std::nullopt;
                return std::tuple(peak->rows, peak->allocated, peak->reserved);
            },
            "events"_a, "first"_a = 0, "device"_a = nb::none(),
            "Apply the rows from `first` on until most bytes are allocated, on a device or on all, "
            "and return how many rows that makes, the bytes allocated and reserved then. None, "
            "without a change, if their times do not ascend.")
        .def(
            "memory_limits",
            [](const state::MemoryState& self) {
                nb::typed<nb::dict, std::int16_t, std::int64_t> limits;
                for (const auto& [device, memory] : self.devices()) {
                    if (memory.memory_limit() >= 0)
                        limits[nb::cast(device)] = memory.memory_limit();
                }
                return limits;
            },
            "Return the bytes of the last memory_limit of each device that has one.")
        .def(
            "levels",
            [](const state::MemoryState& self, std::int64_t time) {
                state::MemoryLevels levels;
                self.append_levels(time, levels);
                return levels_dict(std::move(levels));
            },
            "time"_a, "Return one row of `memory_levels` for each device, stamped with `time`.")
        .def("forget_the_past", &state::MemoryState::forget_the_past,
             "Set peaks to the current values and accumulated statistics to 0.")
        .def("segments", &segments_dict, "Return the segments as columns, by device and address.")
        .def("blocks", &blocks_dict,
             "Return the blocks, free ones too, as columns by device and address. `segment` is a "
             "row of segments() or -1; `state` is 0 inactive, 1 allocated, 2 pending free.")
        .def("statistics", &statistics_dict, "device"_a,
             "Return the keys of torch.cuda.memory_stats that follow from events.")
        .def("parts", &parts_dict, "device"_a,
             "Return how the memory of a device is used, in bytes: allocated and its peak, and of "
             "the known segments what is reserved, free, free in partly used segments and in the "
             "largest free block; `outside` is active outside known segments. Costs the same "
             "however many blocks there are.")
        .def(
            "devices",
            [](const state::MemoryState& self) {
                nb::typed<nb::list, std::int16_t> ordinals;
                for (const auto& [device, memory] : self.devices()) ordinals.append(device);
                return ordinals;
            },
            "Return the ordinals of the devices seen, ascending.")
        .def_prop_ro("anomalies", &state::MemoryState::anomalies,
                     "Events that contradict those before them.");

    nb::class_<state::FreeLevels>(m, "FreeLevels", "How free memory changes as events are added.")
        .def(nb::init<>())
        .def("add", &free_levels, "events"_a,
             "Return the columns of `free_levels` that follow from further events.");

    m.def("lifetimes", &lifetimes_of, "events"_a, "initial_events"_a, "device"_a,
          "Return the rows in which each block of a device begins to be active, its free is "
          "requested, and it ends, as columns in the order of allocation. `free` and `end` are the "
          "number of rows for blocks that are not freed; blocks that end within the initial events "
          "are left out.");
}

}  // namespace gpuviz::bindings
