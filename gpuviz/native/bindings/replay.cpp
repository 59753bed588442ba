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
                       .settings = std::move(settings)};
    made.validate();
    new (program) ReplayProgram(std::move(made));
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
        .value("stats", Operation::stats);
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
        .def("__len__", &ReplayProgram::size);
    nb::class_<Replayer>(m, "Replayer", "Runs a program on an allocator, once.")
        .def(nb::init<const ReplayProgram&, device::OfflineDevice&, allocator::CachingAllocator&>(),
             "program"_a, "device"_a, "allocator"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             nb::keep_alive<1, 4>())
        .def("run", &run, "speed"_a = 0.0,
             nb::sig("def run(self, speed: float = 0.0) -> dict[str, typing.Any]"),
             "Return the addresses of every malloc (0: out of memory), the statistics at every\n"
             "`stats`, the operations carried out and the nanoseconds it took. Speed 1 keeps the\n"
             "program's pauses, 2 halves them, 0 leaves them out.")
        .def("stop", &Replayer::stop, "End run() before its next operation.");
}

}  // namespace gpuviz::bindings
