#include "bindings/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/columns.hpp"
#include "python/allocator_values.hpp"
#include "python/gil.hpp"
#include "replay/event_log.hpp"
#include "replay/recorded_operations.hpp"
#include "replay/replay_log.hpp"
#include "replay/replay_outcome.hpp"
#include "replay/replay_program.hpp"
#include "replay/replayer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using record::MemoryEvent;
using replay::EventLog;
using replay::Operation;
using replay::Replayer;
using replay::ReplayProgram;

namespace {

nb::dict columns_of(const EventLog& log) {
    const std::vector<MemoryEvent>& events = log.events();
    nb::dict columns;
    columns["time_ns"] = to_numpy(events, [](const MemoryEvent& e) { return e.time_ns; });
    columns["action"] =
        to_numpy(events, [](const MemoryEvent& e) { return static_cast<std::uint8_t>(e.action); });
    columns["address"] = to_numpy(events, [](const MemoryEvent& e) { return e.address; });
    columns["size"] = to_numpy(events, [](const MemoryEvent& e) { return e.size; });
    columns["requested_size"] =
        to_numpy(events, [](const MemoryEvent& e) { return e.requested_size; });
    columns["stream"] = to_numpy(events, [](const MemoryEvent& e) { return e.stream; });
    columns["stack"] = to_numpy(events, [](const MemoryEvent& e) { return e.stack; });
    columns["pool"] = to_numpy(events, [](const MemoryEvent& e) { return e.pool; });
    columns["thread"] = to_numpy(events, [](const MemoryEvent& e) { return e.thread; });
    columns["range"] = to_numpy(events, [](const MemoryEvent& e) { return e.range; });
    columns["framework"] = to_numpy(
        events, [](const MemoryEvent& e) { return static_cast<std::int8_t>(e.framework); });
    columns["device"] = to_numpy(events, [](const MemoryEvent& e) { return e.device; });
    return columns;
}

template <typename Value>
std::vector<Value> optional_vector(const std::optional<Column<Value>>& column) {
    return column ? to_vector(*column) : std::vector<Value>{};
}

void make_program(ReplayProgram* program, const Column<std::uint8_t>& operation,
                  const Column<std::uint32_t>& id, const Column<std::uint64_t>& argument,
                  const Column<device::StreamHandle>& stream,
                  const std::optional<Column<std::uint32_t>>& stack,
                  const std::optional<Column<std::uint32_t>>& thread,
                  const std::optional<Column<std::int64_t>>& time_ns,
                  std::vector<std::string> settings) {
    ReplayProgram made{.operation = to_vector(operation),
                       .id = to_vector(id),
                       .argument = to_vector(argument),
                       .stream = to_vector(stream),
                       .stack = optional_vector(stack),
                       .thread = optional_vector(thread),
                       .time_ns = optional_vector(time_ns),
                       .settings = std::move(settings),
                       .origin = {}};
    made.validate();
    new (program) ReplayProgram(std::move(made));
}

// Keeps the arrays alive that its spans look at.
struct EventsOfDevice {
    replay::RecordedEvents events;
    replay::StreamHandles streams;
    ColumnViews views;
};

void make_events(EventsOfDevice* self, Columns columns, std::int16_t device,
                 const Column<std::uint32_t>& stream_ids,
                 const Column<std::uint64_t>& stream_handles) {
    replay::RecordedEvents events;
    events.device_id = device;
    ColumnViews views(std::move(columns));
    views.take("time", events.time)
        .take("action", events.action)
        .take("address", events.address)
        .take("size", events.size)
        .take("requested_size", events.requested_size)
        .take("device", events.device)
        .take("stream", events.stream)
        .take("pool", events.pool)
        .take("stack", events.stack)
        .take("thread", events.thread)
        .take("range", events.range)
        .take("framework", events.framework);
    std::span<const std::uint32_t> ids;
    std::span<const std::uint64_t> handles;
    ColumnViews streams;
    streams.take("stream ids", stream_ids, ids).take("stream handles", stream_handles, handles);
    new (self) EventsOfDevice{events, replay::StreamHandles(ids, handles), std::move(views)};
}

replay::RecordedOperations operations_of(const EventsOfDevice& self,
                                         const allocator::Settings& settings,
                                         std::size_t initial_events, std::uint64_t capacity,
                                         bool lacks_calls, bool omits_calls, bool keeps_settings,
                                         bool keeps_limits, allocator::PoolFilter pool_filter) {
    const python::GilRelease release;
    return replay::recorded_operations(self.events, self.streams,
                                       {.settings = settings,
                                        .initial_events = initial_events,
                                        .capacity = capacity,
                                        .lacks_calls = lacks_calls,
                                        .omits_calls = omits_calls,
                                        .keeps_settings = keeps_settings,
                                        .keeps_limits = keeps_limits,
                                        .pool_filter = pool_filter});
}

nb::dict take_columns(replay::ReplayLog& log) {
    nb::dict columns;
    columns["time"] = to_numpy(std::move(log.time));
    columns["action"] = to_numpy(std::move(log.action));
    columns["address"] = to_numpy(std::move(log.address));
    columns["size"] = to_numpy(std::move(log.size));
    columns["requested_size"] = to_numpy(std::move(log.requested_size));
    columns["stream"] = to_numpy(std::move(log.stream));
    columns["pool"] = to_numpy(std::move(log.pool));
    columns["stack"] = to_numpy(std::move(log.stack));
    columns["thread"] = to_numpy(std::move(log.thread));
    columns["range"] = to_numpy(std::move(log.range));
    columns["framework"] = to_numpy(std::move(log.framework));
    columns["origin"] = to_numpy(std::move(log.origin));
    return columns;
}

void bind_recorded(nb::module_& m) {
    nb::class_<replay::RecordedOperations>(m, "RecordedOperations",
                                           "The operations that a recording's events repeat.")
        .def_prop_ro(
            "program",
            [](replay::RecordedOperations& self) -> ReplayProgram& { return self.program; },
            nb::rv_policy::reference_internal)
        .def_ro("inferred_calls", &replay::RecordedOperations::inferred_calls,
                "Calls of empty_cache that the recording lacks.")
        .def_ro("inferred_limit", &replay::RecordedOperations::inferred_limit,
                "The limit of reserved bytes that follows from failed requests; None without it.");
    nb::class_<EventsOfDevice>(m, "RecordedEvents",
                               "The events of one device of a recording, used without copying.")
        .def("__init__", &make_events, "columns"_a, "device"_a, "stream_ids"_a, "stream_handles"_a)
        .def("operations", &operations_of, nb::kw_only(), "settings"_a, "initial_events"_a,
             "capacity"_a, "lacks_calls"_a, "omits_calls"_a, "keeps_settings"_a, "keeps_limits"_a,
             "pool_filter"_a,
             "Return the operations that the events repeat; see RecordedProgram in\n"
             "native/replay/recorded_operations.hpp.");
    nb::class_<replay::ReplaySink, record::MemoryEventSink>(m, "ReplaySink",
                                                            "Receives the events of a replay.");
    nb::class_<replay::ReplayOutcome, replay::ReplaySink>(
        m, "ReplayOutcome", "What a replay led to; see native/replay/replay_outcome.hpp.")
        .def(nb::init<std::int64_t, std::uint64_t>(), nb::kw_only(), "initial_events"_a,
             "large_page"_a)
        .def("finish", &replay::ReplayOutcome::finish, "To be called after the replay.")
        .def_ro("peak_allocated", &replay::ReplayOutcome::peak_allocated)
        .def_ro("active_at_peak", &replay::ReplayOutcome::active_at_peak)
        .def_ro("reserved_at_peak", &replay::ReplayOutcome::reserved_at_peak)
        .def_ro("peak_reserved", &replay::ReplayOutcome::peak_reserved)
        .def_ro("peak_reserved_origin", &replay::ReplayOutcome::peak_reserved_origin,
                "The row of the recording that led to the peak of reserved bytes.")
        .def_ro("first_failure", &replay::ReplayOutcome::first_failure,
                "The row of the recording whose request failed first; -1 if none did.")
        .def_ro("failures", &replay::ReplayOutcome::failures)
        .def_ro("segments_made", &replay::ReplayOutcome::segments_made)
        .def_ro("bytes_made", &replay::ReplayOutcome::bytes_made)
        .def_ro("segments_released", &replay::ReplayOutcome::segments_released)
        .def_ro("bytes_released", &replay::ReplayOutcome::bytes_released)
        .def_ro("pages_mapped", &replay::ReplayOutcome::pages_mapped)
        .def_ro("pages_unmapped", &replay::ReplayOutcome::pages_unmapped);
    nb::class_<replay::ReplayLog, replay::ReplaySink>(
        m, "ReplayLog", "Keeps the events of a replay with the times of the recording.")
        .def(
            "__init__",
            [](replay::ReplayLog* self, const EventsOfDevice& recorded,
               const replay::RecordedOperations& operations) {
                new (self) replay::ReplayLog(recorded.events, recorded.streams, operations);
            },
            "events"_a, "operations"_a, nb::keep_alive<1, 2>())
        .def("take", &take_columns,
             nb::sig("def take(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Return the events as NumPy columns, by name, once.");
}

nb::dict run(Replayer& replayer, double speed) {
    replay::ReplayResult result;
    {
        const python::GilRelease release;
        result = replayer.run(speed);
    }
    nb::list statistics;
    for (const allocator::Statistics& at : result.statistics) {
        statistics.append(python::to_python(at));
    }
    nb::dict values;
    values["operations"] = result.operations;
    values["elapsed_ns"] = result.elapsed_ns;
    values["addresses"] = to_numpy(std::move(result.addresses));
    values["statistics"] = statistics;
    return values;
}

}  // namespace

void bind_replay(nb::module_& m) {
    nb::enum_<Operation>(m, "Operation", nb::is_arithmetic(),
                         "The operation of a row of a program.")
        .value("malloc", Operation::malloc)
        .value("free", Operation::free)
        .value("record_stream", Operation::record_stream)
        .value("busy", Operation::busy)
        .value("sync", Operation::sync)
        .value("empty_cache", Operation::empty_cache)
        .value("begin_pool", Operation::begin_pool)
        .value("end_pool", Operation::end_pool)
        .value("settings", Operation::settings)
        .value("stats", Operation::stats)
        .value("free_pending", Operation::free_pending)
        .value("complete", Operation::complete)
        .value("release_pool", Operation::release_pool)
        .value("memory_limit", Operation::memory_limit)
        .value("expandable", Operation::expandable)
        .value("place", Operation::place)
        .value("restore_segment", Operation::restore_segment)
        .value("restore_pages", Operation::restore_pages)
        .value("restore_gap", Operation::restore_gap)
        .value("restore_block", Operation::restore_block);
    nb::class_<EventLog, record::MemoryEventSink>(m, "EventLog", "Keeps every event.")
        .def(nb::init<>())
        .def("__len__", [](const EventLog& log) { return log.events().size(); })
        .def("clear", &EventLog::clear)
        .def("events", &columns_of,
             nb::sig("def events(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Return the events as NumPy columns, by name.");
    nb::class_<ReplayProgram>(m, "ReplayProgram", "An operation stream in columns.")
        .def("__init__", &make_program, "operation"_a, "id"_a, "argument"_a, "stream"_a,
             "stack"_a = nb::none(), "thread"_a = nb::none(), "time_ns"_a = nb::none(),
             "settings"_a = std::vector<std::string>{})
        .def("__len__", &ReplayProgram::size)
        .def_prop_ro(
            "operation", [](const ReplayProgram& self) { return to_numpy(self.operation); },
            nb::sig("def operation(self) -> numpy.typing.NDArray[numpy.uint8]"))
        .def_prop_ro(
            "id", [](const ReplayProgram& self) { return to_numpy(self.id); },
            nb::sig("def id(self) -> numpy.typing.NDArray[numpy.uint32]"))
        .def_prop_ro(
            "origin", [](const ReplayProgram& self) { return to_numpy(self.origin); },
            nb::sig("def origin(self) -> numpy.typing.NDArray[numpy.int64]"),
            "The row of the recording that each operation repeats.");
    bind_recorded(m);
    nb::class_<Replayer>(m, "Replayer", "Runs a program on an allocator, once.")
        .def(nb::init<const ReplayProgram&, device::OfflineDevice&, allocator::Allocator&,
                      replay::ReplaySink*>(),
             "program"_a, "device"_a, "allocator"_a, "sink"_a = nb::none(), nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>())
        .def("run", &run, "speed"_a = 0.0,
             nb::sig("def run(self, speed: float = 0.0) -> dict[str, typing.Any]"),
             "Return the addresses of every malloc (0: out of memory), the statistics at every\n"
             "`stats`, the operations carried out and the nanoseconds it took. Speed 1 keeps the\n"
             "program's pauses, 2 halves them, 0 leaves them out.")
        .def("stop", &Replayer::stop, "End run() before its next operation.");
}

}  // namespace gpuviz::bindings
