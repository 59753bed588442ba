#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/column_arrays.hpp"
#include "bindings/session_counters.hpp"
#include "python/gil.hpp"
#include "python/python_stack.hpp"
#include "record/clock.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using python::GilRelease;
using record::Session;
using record::StackMark;
using record::StackTable;

namespace {

std::vector<nb::dict> take(Session& session, bool flush) {
    std::vector<record::EventColumns> chunks = [&] {
        const GilRelease unlocked;
        return session.take(flush);
    }();
    std::vector<nb::dict> tables;
    for (record::EventColumns& chunk : chunks) {
        tables.push_back(to_arrays(std::move(chunk)));
    }
    return tables;
}

// Chunks by name of the table. Gives the GIL up once for all of them: a thread that computes in
// Python returns it after 5 ms.
nb::dict take_tables(Session& session, bool flush) {
    std::vector<std::pair<const char*, std::function<nb::list()>>> taken;
    {
        const GilRelease unlocked;
        record::ActivityLog::for_each_log(session.log(), [&](const char* name, auto& log) {
            auto chunks = std::make_shared<decltype(log.take(flush))>(log.take(flush));
            taken.emplace_back(name, [chunks] {
                nb::list arrays;
                for (auto& chunk : *chunks) arrays.append(to_arrays(std::move(chunk)));
                return arrays;
            });
        });
    }
    nb::dict tables;
    for (const auto& [name, arrays] : taken) tables[name] = arrays();
    return tables;
}

nb::list rows_of(const std::vector<record::Stream>& streams) {
    nb::list rows;
    for (const record::Stream& stream : streams) {
        rows.append(nb::make_tuple(stream.id, stream.device, stream.handle, stream.name,
                                   int(stream.kind), stream.priority, stream.created,
                                   stream.destroyed));
    }
    return rows;
}

// Kernels' names are bytes of somebody else's.
nb::list strings(const Session& session, std::uint32_t first_id) {
    nb::list texts;
    for (const std::string& text : session.log().strings.from(first_id)) {
        texts.append(nb::steal(
            PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace")));
    }
    return texts;
}

using Stack = std::vector<std::pair<nb::object, std::int64_t>>;

std::vector<Stack> new_stacks(Session& session, std::uint32_t first_id) {
    if (first_id == 0) {
        throw std::invalid_argument("Stack ids begin at 1, got first_id 0.");
    }
    std::vector<Stack> stacks;
    const std::size_t settled = session.settle_stacks();
    for (std::size_t id = first_id; id <= settled; ++id) {
        Stack& stack = stacks.emplace_back();
        for (const record::StackFrame& frame : session.stacks().frames(std::uint32_t(id))) {
            if (is_mark(frame, StackMark::module) || is_mark(frame, StackMark::backward)) {
                break;
            }
            auto* code = frame.code == 0 ? Py_None : reinterpret_cast<PyObject*>(frame.code);
            stack.emplace_back(nb::borrow(code), frame.instruction);
        }
    }
    return stacks;
}

// Short collections are part of what their thread does.
constexpr std::int64_t least_collection_ns = 100'000;

void note_collection(Session& session, std::string_view phase, nb::handle) {
    thread_local std::int64_t began_ns = 0;
    record::HostSampler* const sampler = session.host_sampler();
    if (sampler == nullptr || !session.running()) {
        return;
    }
    if (phase == "start") {
        began_ns = record::now_ns();
        return;
    }
    const std::int64_t ended_ns = record::now_ns();
    if (began_ns != 0 && ended_ns - began_ns >= least_collection_ns) {
        sampler->collected(began_ns, ended_ns, session.capture_stack());
    }
    began_ns = 0;
}

nb::tuple marks_of(const Session& session, std::uint32_t stack) {
    std::uint32_t module = 0;
    std::int64_t forward = -1;
    for (const record::StackFrame& frame : session.stacks().frames(stack)) {
        if (is_mark(frame, StackMark::module) && module == 0) {
            module = std::uint32_t(frame.instruction);
        } else if (is_mark(frame, StackMark::backward)) {
            forward = frame.instruction;
        }
    }
    return nb::make_tuple(module != 0, session.stacks().modules().name_of(module), forward,
                          session.forward_stacks().has_node(stack));
}

void add_tensors(Session& session, int device, int category,
                 const std::vector<std::pair<std::uint64_t, std::string>>& tensors) {
    record::ActivityLog& log = session.log();
    const std::int64_t time = log.since_start(record::now_ns());
    for (const auto& [address, name] : tensors) {
        log.tensors.append({.time = time,
                            .device = std::int16_t(device),
                            .address = address,
                            .category = record::Category(category),
                            .name = name.empty() ? 0 : log.strings.intern(name)});
    }
}

std::uint32_t add_stack(Session& session, const std::vector<nb::object>& codes,
                        const std::vector<std::int64_t>& instructions) {
    const std::size_t count = std::min(codes.size(), instructions.size());
    std::vector<record::StackFrame> frames;
    frames.reserve(count);
    for (std::size_t at = 0; at < count; ++at) {
        frames.push_back({reinterpret_cast<std::uint64_t>(codes[at].ptr()), instructions[at]});
    }
    return session.add_stack(frames);
}

void watch_modules(Session& session, const nb::object& code, const nb::object& name_new) {
    session.stacks().modules().watch(
        name_new.is_none() ? 0 : reinterpret_cast<std::uint64_t>(code.ptr()),
        name_new.is_none() ? std::function<bool()>{} : [name_new] {
            try {
                return nb::cast<bool>(name_new());
            } catch (nb::python_error& error) {
                error.discard_as_unraisable("naming the modules of a neural network");
                return true;
            }
        });
}

void make_session(Session* place, std::size_t ring_capacity, double interval_ms,
                  std::size_t max_stacks, std::size_t stack_depth, bool launch_blocks,
                  bool checks_pinned, bool guards_pages, bool host_samples) {
    if (!(interval_ms > 0 && interval_ms <= 60'000)) {
        throw std::invalid_argument("interval_ms must be above 0 and at most 60000, got " +
                                    nb::cast<std::string>(nb::str(nb::float_(interval_ms))) + ".");
    }
    const record::SessionOptions options{
        .ring_capacity = ring_capacity,
        .interval = std::chrono::microseconds(std::llround(std::ceil(interval_ms * 1000))),
        .max_stacks = max_stacks,
        .launch_blocks = launch_blocks,
        .checks_pinned = checks_pinned,
        .guards_pages = guards_pages,
        .host_samples = host_samples,
    };
    std::unique_ptr<record::StackWalker> walker;
    if (stack_depth != 0) {
        walker = std::make_unique<python::PythonStackWalker>(
            stack_depth, python::PythonStackWalker::own_layout());
    }
    new (place) Session(options, std::move(walker));
}

void bind_stack_table(nb::module_& m) {
    nb::class_<StackTable>(m, "StackTable", "The distinct call stacks of a session.")
        .def("__len__", &StackTable::size)
        .def_prop_ro("dropped", &StackTable::dropped,
                     "Captures that were recorded as stack 0 because the table was full.");
}

}  // namespace

void bind_record(nb::module_& m) {
    bind_stack_table(m);
    nb::class_<record::EventRing, record::MemoryEventSink>(
        m, "EventRing", "Passes the events of one device to the collector; never waits.");
    const record::SessionOptions defaults;
    nb::class_<Session> session(
        m, "Session",
        "One recording: a ring for each device, the thread that drains them into "
        "columns, and the call stacks.");
    session
        .def("__init__", &make_session, nb::kw_only(), "ring_capacity"_a = defaults.ring_capacity,
             "interval_ms"_a = 5.0, "max_stacks"_a = defaults.max_stacks, "stack_depth"_a = 64,
             "launch_blocks"_a = defaults.launch_blocks, "checks_pinned"_a = defaults.checks_pinned,
             "guards_pages"_a = defaults.guards_pages, "host_samples"_a = defaults.host_samples,
             "`ring_capacity` is events per device, a power of two; `stack_depth` 0 turns call "
             "stacks off; with `launch_blocks` the blocks that launches touch are found; with "
             "`checks_pinned` pinned memory that copies read is compared and that they fill is "
             "watched, with `guards_pages` that of copies is protected.")
        .def("sink", &Session::sink, "device"_a, nb::rv_policy::reference_internal,
             "The sink of a device; it keeps the session alive.")
        .def("start", &Session::start, "starts_clock"_a = true, nb::call_guard<GilRelease>(),
             "Begin collecting, and the clock unless `start_clock` does later. A session records "
             "once.")
        .def("start_clock", &Session::start_clock,
             "Make this moment time zero; all that was collected before is at time zero too.")
        .def("since_start", &Session::since_start, "time_ns"_a,
             "A time on CLOCK_MONOTONIC in ns since time zero; 0 before the clock has started.")
        .def("stop", &Session::stop, nb::call_guard<GilRelease>(),
             "Return when every event pushed before is in columns; does nothing unless running.")
        .def("take", &take, "flush"_a = false,
             nb::sig("def take(self, flush: bool = False) -> list[dict[str, numpy.ndarray]]"),
             "Chunks of the table memory_events not yet taken, full ones only unless `flush`; "
             "NumPy arrays by column, at most 65536 rows each, in order within a device.")
        .def("take_tables", &take_tables, "flush"_a = false,
             nb::sig("def take_tables(self, flush: bool = False) -> "
                     "dict[str, list[dict[str, numpy.ndarray]]]"),
             "Return the new rows of all other tables, by name.")
        .def(
            "streams", [](Session& session) { return rows_of(session.log().streams.all()); },
            nb::sig("def streams(self) -> "
                    "list[tuple[int, int, int, str, int, int, int, int]]"),
            "Rows (id, device, handle, name, kind, priority, created, destroyed) by id; the name "
            "is empty unless the user gave one, `kind` is a number of DICTIONARIES.")
        .def(
            "changed_streams",
            [](Session& session) { return rows_of(session.log().streams.take_changed()); },
            nb::sig("def changed_streams(self) -> "
                    "list[tuple[int, int, int, str, int, int, int, int]]"),
            "Return the rows that are new or have changed since the last call.")
        .def("strings", &strings, "first_id"_a,
             nb::sig("def strings(self, first_id: int) -> list[str]"),
             "Return the texts with the ids `first_id`, `first_id + 1`, ... of the table strings.")
        .def_prop_ro("stacks", nb::overload_cast<>(&Session::stacks),
                     nb::rv_policy::reference_internal)
        .def("new_stacks", &new_stacks, "first_id"_a,
             nb::sig("def new_stacks(self, first_id: int) -> "
                     "list[list[tuple[types.CodeType | None, int]]]"),
             "The stacks `first_id`, `first_id + 1`, ...: pairs of code object and instruction "
             "offset in bytes, innermost first; or None and the number of frames left out, all of "
             "them if the stack was captured without the GIL and its thread has left it.")
        .def_prop_ro(
            "samples_host", [](Session& session) { return session.host_sampler() != nullptr; },
            "Whether threads are sampled.")
        .def("learn_gil", &Session::learn_gil,
             "Help the sampler to find which thread has the GIL; after a few calls from threads "
             "that take turns, it does.")
        .def("collection", &note_collection, "phase"_a, "info"_a.none(),
             "A function for `gc.callbacks`.")
        .def("marks_of", &marks_of, "stack"_a,
             nb::sig("def marks_of(self, stack: int) -> tuple[bool, str, int, bool]"),
             "Whether a stack is in a module, and the name of the innermost one, empty if unknown; "
             "of a backward pass the stack of its forward work, 0 if unknown, otherwise -1; and "
             "whether a node of autograd was made before it.")
        .def(
            "add_tensors", &add_tensors, "device"_a, "category"_a, "tensors"_a,
            "Add rows of the table tensors: addresses and names, empty if unknown, of tensors that "
            "are of a category (a number of CATEGORIES) now.")
        .def("add_stack", &add_stack, "codes"_a, "instructions"_a,
             nb::sig("def add_stack(self, codes: collections.abc.Sequence[types.CodeType], "
                     "instructions: collections.abc.Sequence[int]) -> int"),
             "The id of a stack given by its code objects, innermost first, and the byte offset of "
             "the instruction in each; 0 if this session has no stacks.")
        .def("watch_modules", &watch_modules, "code"_a.none(), "name_new"_a.none(),
             nb::sig("def watch_modules(self, code: types.CodeType | None, "
                     "name_new: typing.Callable[[], bool] | None) -> None"),
             "Let stacks contain the modules that are the first argument of calls of `code`, which "
             "must stay. `name_new` is called after new ones, again if it returns False; None ends "
             "this.")
        .def(
            "module_number",
            [](Session& session, nb::handle module) {
                return session.stacks()
                    .modules()
                    .number_of(reinterpret_cast<std::uint64_t>(module.ptr()))
                    .value;
            },
            "module"_a, "The number of an object in stacks, which stays until `forget_module`.")
        .def(
            "first_local_of",
            [](const Session& session, nb::handle frame) -> nb::object {
                const void* const found = session.first_local_of(frame.ptr());
                auto* const object = static_cast<PyObject*>(const_cast<void*>(found));
                return object == nullptr ? nb::none() : nb::borrow(object);
            },
            "frame"_a, nb::sig("def first_local_of(self, frame: types.FrameType) -> object"),
            "The object in the first local variable of a frame that runs; None if there is none or "
            "it is unknown. Unlike `f_locals`, it keeps nothing alive.")
        .def(
            "name_module",
            [](Session& session, std::uint32_t number, std::string name) {
                session.stacks().modules().set_name(number, std::move(name));
            },
            "number"_a, "name"_a)
        .def(
            "forget_module",
            [](Session& session, std::uintptr_t address) {
                session.stacks().modules().forget(address);
            },
            "address"_a, "To be called when the object at an address dies.")
        .def("abandon_after_fork", &Session::abandon_after_fork,
             "In the child after fork(): collect nothing from now on, and wait for nothing.");
    bind_session_counters(session);
}

}  // namespace gpuviz::bindings
