#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "formats/torch_snapshot_writer.hpp"
#include "record/memory_event.hpp"
#include "torch/pool_size.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using formats::SnapshotToWrite;

namespace {

using Ids = std::span<const std::uint32_t>;

void check_below(std::span<const std::uint32_t> values, std::size_t limit, const char* name) {
    for (const std::uint32_t value : values) {
        if (value >= limit) {
            throw std::invalid_argument("column '" + std::string(name) + "' has " +
                                        std::to_string(value) + ", expected less than " +
                                        std::to_string(limit));
        }
    }
}

void check_codes(std::span<const std::uint8_t> values, std::uint8_t limit, const char* name) {
    const std::vector<std::uint32_t> wide(values.begin(), values.end());
    check_below(wide, limit, name);
}

void take_events(const Columns& columns, SnapshotToWrite::Events& events) {
    ColumnViews(columns)
        .take("action", events.action)
        .take("address", events.address)
        .take("size", events.size)
        .take("block_size", events.block_size)
        .take("stream", events.stream)
        .take("time_us", events.time_us)
        .take("pool", events.pool)
        .take("stack", events.stack)
        .take("metadata", events.metadata)
        .take("kind", events.kind)
        .take("needs_segment", events.needs_segment);
    for (const std::int8_t code : events.action) {
        if (code < 0 || code >= std::int8_t(record::action_count)) {
            throw std::invalid_argument("an action that is none");
        }
    }
    const std::size_t rows =
        std::accumulate(events.devices.begin(), events.devices.end(), std::size_t{0});
    if (rows != events.action.size()) throw std::invalid_argument("devices have other row counts");
}

void take_memory(const Columns& segment_columns, const Columns& block_columns,
                 SnapshotToWrite& snapshot) {
    auto& segments = snapshot.segments;
    ColumnViews(segment_columns)
        .take("device", segments.device)
        .take("address", segments.address)
        .take("size", segments.size)
        .take("stream", segments.stream)
        .take("pool", segments.pool)
        .take("kind", segments.kind)
        .take("is_expandable", segments.is_expandable)
        .take("stack", segments.stack)
        .take("blocks", segments.blocks);
    auto& blocks = snapshot.blocks;
    ColumnViews(block_columns)
        .take("address", blocks.address)
        .take("size", blocks.size)
        .take("requested_size", blocks.requested_size)
        .take("state", blocks.state)
        .take("stack", blocks.stack);
    const auto count =
        std::accumulate(segments.blocks.begin(), segments.blocks.end(), std::uint64_t{0});
    if (count != blocks.address.size()) throw std::invalid_argument("segments lack blocks");
    check_codes(segments.kind, 3, "kind");
    check_codes(blocks.state, 3, "state");
}

void take_stacks(const Columns& frames, const Columns& stacks, SnapshotToWrite& snapshot) {
    ColumnViews(frames)
        .take("name", snapshot.frame_names)
        .take("filename", snapshot.frame_files)
        .take("line", snapshot.frame_lines);
    ColumnViews(stacks).take("offsets", snapshot.stack_offsets);
    ColumnViews(stacks).take("frames", snapshot.stack_frames);
    std::int32_t previous = 0;
    for (const std::int32_t offset : snapshot.stack_offsets) {
        if (offset < previous) throw std::invalid_argument("offsets of stacks must ascend");
        previous = offset;
    }
    if (static_cast<std::size_t>(previous) > snapshot.stack_frames.size()) {
        throw std::invalid_argument("offsets of stacks reach beyond their frames");
    }
}

void check_ids(const SnapshotToWrite& snapshot) {
    const std::size_t texts = snapshot.texts.size() + 1;
    const std::size_t stacks = std::max<std::size_t>(snapshot.stack_offsets.size(), 1);
    check_below(snapshot.frame_names, texts, "name");
    check_below(snapshot.frame_files, texts, "filename");
    check_below(snapshot.stack_frames, snapshot.frame_lines.size() + 1, "frames");
    check_below(snapshot.events.metadata, texts, "metadata");
    for (const Ids ids : {snapshot.events.stack, snapshot.segments.stack, snapshot.blocks.stack}) {
        check_below(ids, stacks, "stack");
    }
    check_below(snapshot.events.pool, snapshot.pools.size(), "pool");
    check_below(snapshot.segments.pool, snapshot.pools.size(), "pool");
}

nb::object are_large_by_size(const Column<std::int8_t>& actions,
                             const Column<std::int64_t>& sizes) {
    std::span<const std::int8_t> action;
    std::span<const std::int64_t> size;
    ColumnViews().take("action", actions, action).take("size", sizes, size);
    std::vector<std::uint8_t> are_large;
    are_large.reserve(action.size());
    for (std::size_t row = 0; row < action.size(); ++row) {
        are_large.push_back(torch::is_large_by_size(record::Action(action[row]),
                                                    static_cast<std::uint64_t>(size[row])));
    }
    return to_numpy(std::move(are_large));
}

void write_snapshot(const nb::object& write, std::vector<std::size_t> devices,
                    const Columns& events, const Columns& segments, const Columns& blocks,
                    const Columns& frames, const Columns& stacks, std::vector<std::string> texts,
                    std::vector<std::pair<std::int64_t, std::int64_t>> pools, nb::bytes rest) {
    SnapshotToWrite snapshot;
    snapshot.events.devices = std::move(devices);
    snapshot.texts = std::move(texts);
    snapshot.pools = std::move(pools);
    snapshot.rest = std::string(rest.c_str(), rest.size());
    take_events(events, snapshot.events);
    take_memory(segments, blocks, snapshot);
    take_stacks(frames, stacks, snapshot);
    check_ids(snapshot);
    formats::write_torch_snapshot(snapshot, [&write](std::string_view piece) {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        write(nb::bytes(piece.data(), piece.size()));
    });
}

}  // namespace

void bind_torch_writer(nb::module_& m) {
    m.def("are_large_by_size", &are_large_by_size, "actions"_a.noconvert(), "sizes"_a.noconvert(),
          "Return 1 for each event that a reader takes to be of a large pool by its size, else 0.");
    m.def("write_torch_snapshot", &write_snapshot, "write"_a, "devices"_a, "events"_a, "segments"_a,
          "blocks"_a, "frames"_a, "stacks"_a, "texts"_a, "pools"_a, "rest"_a,
          "Write the pickle of a torch memory snapshot: `write` gets it in pieces. Ids are "
          "positions from 1, 0 is none; `devices` has the events of each device, which follow "
          "each other; `rest` are further keys and values, pickled without memo.");
}

}  // namespace gpuviz::bindings
