#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "hazards/engine.hpp"
#include "hazards/recorded_operations.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using hazards::Access;
using hazards::Engine;
using hazards::Hazard;

namespace {

// Block, mode, first byte, and the byte behind the last one if it is known.
using AccessFields =
    std::tuple<hazards::BlockId, hazards::Mode, std::uint64_t, std::optional<std::uint64_t>>;
using Place = std::tuple<hazards::BlockId, std::uint64_t, std::optional<std::uint64_t>>;
using PlaceFields = std::optional<Place>;
using HazardFields =
    std::tuple<hazards::Kind, hazards::Tier, hazards::OperationId, hazards::OperationId,
               hazards::BlockId, std::optional<hazards::BlockId>,
               std::vector<std::pair<std::uint64_t, std::uint64_t>>>;

Access access_of(const AccessFields& fields) {
    const auto& [block, mode, start, stop] = fields;
    return {.block = block,
            .mode = mode,
            .is_exact = stop.has_value(),
            .start = start,
            .stop = stop.value_or(0)};
}

std::vector<Access> accesses_of(const std::vector<AccessFields>& fields) {
    std::vector<Access> accesses;
    accesses.reserve(fields.size());
    for (const AccessFields& each : fields) accesses.push_back(access_of(each));
    return accesses;
}

Access place_of(const Place& place, hazards::Mode mode) {
    const auto& [block, start, stop] = place;
    return access_of({block, mode, start, stop});
}

std::vector<HazardFields> take(Engine& engine) {
    std::vector<HazardFields> fields;
    for (Hazard& each : engine.take()) {
        std::optional<hazards::BlockId> other;
        if (each.other_block != 0) other = each.other_block;
        fields.emplace_back(each.kind, each.tier, each.first, each.second, each.block, other,
                            std::move(each.bytes));
    }
    return fields;
}

Columns hazards_of(const Columns& operation_columns, const Columns& access_columns,
                   const Columns& block_columns) {
    hazards::RecordedOperations operations;
    hazards::RecordedAccesses accesses;
    hazards::RecordedBlocks blocks;
    ColumnViews views[3] = {ColumnViews(operation_columns), ColumnViews(access_columns),
                            ColumnViews(block_columns)};
    views[0]
        .take("code", operations.code)
        .take("stream", operations.stream)
        .take("device", operations.device)
        .take("object", operations.object)
        .take("accesses", operations.accesses);
    views[1]
        .take("block", accesses.block)
        .take("mode", accesses.mode)
        .take("start", accesses.start)
        .take("stop", accesses.stop)
        .take("is_exact", accesses.is_exact);
    views[2]
        .take("address", blocks.address)
        .take("bytes", blocks.bytes)
        .take("is_pinned", blocks.is_pinned)
        .take("is_host_written", blocks.is_host_written)
        .take("is_private", blocks.is_private);
    hazards::RecordedHazards found;
    {
        const python::GilRelease unlocked;
        found = hazards::hazards_of(operations, accesses, blocks);
    }
    Columns columns;
    columns["kind"] = to_numpy(std::move(found.kind));
    columns["tier"] = to_numpy(std::move(found.tier));
    columns["first"] = to_numpy(std::move(found.first));
    columns["second"] = to_numpy(std::move(found.second));
    columns["block"] = to_numpy(std::move(found.block));
    columns["other_block"] = to_numpy(std::move(found.other_block));
    columns["bytes"] = to_numpy(std::move(found.bytes));
    return columns;
}

void bind_enumerations(nb::module_& m) {
    using hazards::Allocator;
    using hazards::CopyKind;
    using hazards::Kind;
    using hazards::Memory;
    using hazards::Mode;
    using hazards::StreamKind;
    using hazards::Tier;
    nb::enum_<StreamKind>(m, "HazardStreamKind", "What orders a stream implicitly.")
        .value("blocking", StreamKind::blocking)
        .value("non_blocking", StreamKind::non_blocking);
    nb::enum_<Mode>(m, "HazardMode", "How an operation accesses memory.")
        .value("read", Mode::read)
        .value("unknown", Mode::unknown)
        .value("atomic", Mode::atomic)
        .value("write", Mode::write);
    nb::enum_<CopyKind>(m, "HazardCopyKind", "The sides of a copy.")
        .value("host_to_device", CopyKind::host_to_device)
        .value("device_to_host", CopyKind::device_to_host)
        .value("device_to_device", CopyKind::device_to_device)
        .value("host_to_host", CopyKind::host_to_host);
    nb::enum_<Memory>(m, "HazardMemory", "The kind of memory of a block.")
        .value("device", Memory::device)
        .value("pinned", Memory::pinned);
    nb::enum_<Allocator>(m, "HazardAllocator", "Who frees and reuses a block.")
        .value("cuda", Allocator::cuda)
        .value("caching", Allocator::caching)
        .value("private_pool", Allocator::private_pool)
        .value("stream_ordered", Allocator::stream_ordered);
    nb::enum_<Kind>(m, "HazardKind", "What two unordered operations do to the same memory.")
        .value("RAW", Kind::raw)
        .value("WAR", Kind::war)
        .value("WAW", Kind::waw)
        .value("reuse", Kind::reuse)
        .value("use_after_free", Kind::use_after_free)
        .value("use_before_alloc", Kind::use_before_alloc);
    nb::enum_<Tier>(m, "HazardTier", "How sure a hazard is.")
        .value("certain", Tier::certain)
        .value("probable", Tier::probable)
        .value("latent", Tier::latent);
}

}  // namespace

void bind_hazards(nb::module_& m) {
    bind_enumerations(m);
    const auto launch = [](Engine& engine, hazards::OperationId operation,
                           const std::vector<AccessFields>& accesses, hazards::Slot stream,
                           hazards::ThreadId thread, bool programmatic) {
        engine.launch(operation, thread, stream, accesses_of(accesses), programmatic);
    };
    const auto copy = [](Engine& engine, hazards::OperationId operation, hazards::CopyKind kind,
                         const PlaceFields& source, const PlaceFields& destination,
                         std::optional<hazards::Slot> stream, hazards::ThreadId thread,
                         std::optional<hazards::Device> peer) {
        std::vector<Access> accesses;
        if (source) accesses.push_back(place_of(*source, hazards::Mode::read));
        if (destination) accesses.push_back(place_of(*destination, hazards::Mode::write));
        engine.copy(operation, thread, stream.value_or(hazards::Order::legacy),
                    {.kind = kind,
                     .is_synchronous = !stream,
                     .is_pageable = accesses.size() < 2,
                     .peer = peer},
                    accesses);
    };
    const auto memset = [](Engine& engine, hazards::OperationId operation, const Place& destination,
                           std::optional<hazards::Slot> stream, hazards::ThreadId thread) {
        const Access access = place_of(destination, hazards::Mode::write);
        engine.memset(operation, thread, stream.value_or(hazards::Order::legacy), !stream,
                      {&access, 1});
    };
    const auto host_access = [](Engine& engine, hazards::OperationId operation,
                                const std::vector<AccessFields>& accesses,
                                hazards::ThreadId thread) {
        engine.host_access(operation, thread, accesses_of(accesses));
    };
    const auto allocate = [](Engine& engine, hazards::OperationId operation,
                             hazards::Allocator allocator, hazards::Memory memory,
                             std::uint64_t address, std::uint64_t bytes, hazards::Slot stream,
                             hazards::ThreadId thread) {
        return engine.allocate({operation, allocator, memory, address, bytes, stream, thread});
    };
    const auto create_graph = [](Engine& engine, const std::vector<AccessFields>& accesses) {
        return engine.create_graph(accesses_of(accesses));
    };
    nb::class_<Engine>(m, "HazardEngine",
                       "Finds operations that access the same memory in conflicting ways without "
                       "a guaranteed order, in a program given call by call. Stream 0 is the "
                       "legacy default stream of device 0; operations are numbered from 1, 0 is "
                       "none. "
                       "ValueError for what does not exist.")
        .def(
            "__init__",
            [](Engine* engine, bool cuda_free_synchronizes, bool pageable_download_blocks,
               bool strict_threads) {
                new (engine)
                    Engine({cuda_free_synchronizes, pageable_download_blocks, strict_threads});
            },
            nb::kw_only(), "cuda_free_synchronizes"_a = true, "pageable_download_blocks"_a = false,
            "strict_threads"_a = false)
        .def("create_stream", &Engine::create_stream, "kind"_a, "device"_a = 0)
        .def("legacy_stream", &Engine::legacy_stream, "device"_a)
        .def("destroy_stream", &Engine::destroy_stream, "stream"_a)
        .def("create_event", &Engine::create_event)
        .def("destroy_event", &Engine::destroy_event, "event"_a)
        .def("launch", launch, "operation"_a, "accesses"_a, "stream"_a, "thread"_a = 0,
             "programmatic"_a = false)
        .def("copy", copy, "operation"_a, "kind"_a, "source"_a, "destination"_a, "stream"_a,
             "thread"_a = 0, "peer"_a = nb::none(),
             "Pageable memory and the stream of a synchronous copy are None. `peer` is the other "
             "device of a copy between two.")
        .def("memset", memset, "operation"_a, "destination"_a, "stream"_a, "thread"_a = 0)
        .def("host_access", host_access, "operation"_a, "accesses"_a, "thread"_a = 0)
        .def("record_event", &Engine::record_event, "thread"_a, "event"_a, "stream"_a)
        .def("wait_event", &Engine::wait_event, "thread"_a, "stream"_a, "event"_a)
        .def("synchronize_event", &Engine::synchronize_event, "thread"_a, "event"_a)
        .def("synchronize_stream", &Engine::synchronize_stream, "thread"_a, "stream"_a)
        .def("synchronize_device", &Engine::synchronize_device, "thread"_a, "device"_a = 0)
        .def("write_value", &Engine::write_value, "thread"_a, "stream"_a, "address"_a)
        .def("wait_value", &Engine::wait_value, "thread"_a, "stream"_a, "address"_a)
        .def("allocate", allocate, "operation"_a, "allocator"_a, "memory"_a, "address"_a, "bytes"_a,
             "stream"_a = 0, "thread"_a = 0, "Return the id of a block.")
        .def("record_stream", &Engine::record_stream, "block"_a, "stream"_a)
        .def("free", &Engine::free, "operation"_a, "thread"_a, "block"_a)
        .def("free_async", &Engine::free_async, "operation"_a, "thread"_a, "block"_a, "stream"_a)
        .def("cuda_free", &Engine::cuda_free, "thread"_a, "block"_a)
        .def("begin_capture", &Engine::begin_capture, "stream"_a)
        .def("end_capture", &Engine::end_capture, "stream"_a, "Return an executable graph.")
        .def("create_graph", create_graph, "accesses"_a)
        .def("instantiate", &Engine::instantiate, "graph"_a)
        .def("launch_graph", &Engine::launch_graph, "operation"_a, "thread"_a, "graph"_a,
             "stream"_a)
        .def("take", &take,
             "Return the hazards found since the last call: kind, tier, first and second "
             "operation, block, other block, and bytes of the block.");
    m.def("hazards_of", &hazards_of, "operations"_a, "accesses"_a, "blocks"_a,
          "Return the hazards of the columns of gpuviz.hazards.operations. `kind` and `tier` are "
          "codes of HazardKind and HazardTier, `first` and `second` rows of the operations; blocks "
          "are rows, -1 for none. ValueError if rows do not exist.");
}

}  // namespace gpuviz::bindings
