// Drivers for the tests and benchmarks of the core; built for developers only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cupti/cupti_records.hpp"
#include "python/python_stack.hpp"
#include "record/clock.hpp"
#include "record/page_guard.hpp"
#include "record/pinned_copies.hpp"
#include "record/session.hpp"
#include "record/thread_id.hpp"
#include "record/watchpoint.hpp"
#include "testing/bare_cupti.hpp"
#include "testing/synthetic_records.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Mean duration of a call of `step` in ns, over `count` calls.
template <typename Step>
double mean_ns(std::int64_t count, Step&& step) {
    const std::int64_t begin = gpuviz::record::now_ns();
    for (std::int64_t i = 0; i < count; ++i) {
        step(i);
    }
    return double(gpuviz::record::now_ns() - begin) / double(count);
}

void push_event(gpuviz::record::MemoryEventSink& sink, std::int64_t time_ns, unsigned action,
                std::uint64_t address, std::uint64_t size, std::uint64_t requested_size, int device,
                std::uint64_t stream, std::uint32_t pool, std::uint32_t stack, std::uint32_t thread,
                std::uint32_t range, bool completed) {
    if (action >= gpuviz::record::action_count) {
        throw std::invalid_argument("Not the index of an action: " + std::to_string(action) + ".");
    }
    sink.push({time_ns,
               address,
               size,
               requested_size,
               stream,
               stack,
               pool,
               thread,
               range,
               std::uint16_t(device),
               gpuviz::record::Action(action),
               completed,
               {}});
}

double push_many(gpuviz::record::MemoryEventSink& sink, std::int64_t count, int device,
                 std::int64_t pause_every) {
    const nb::gil_scoped_release unlocked;
    return mean_ns(count, [&](std::int64_t i) {
        if (pause_every != 0 && i % pause_every == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        sink.push({gpuviz::record::now_ns(),
                   std::uint64_t(i),
                   512,
                   500,
                   0,
                   0,
                   0,
                   gpuviz::record::current_thread_id(),
                   0,
                   std::uint16_t(device),
                   gpuviz::record::Action::alloc,
                   {}});
    });
}

double parse_records(gpuviz::record::Session& session, std::size_t count) {
    const gpuviz::testing::AbsentCupti cupti;
    const gpuviz::testing::SyntheticRecords made(count);
    gpuviz::cupti::CuptiRecords records(cupti, session.log(), true);
    return mean_ns(std::int64_t(count),
                   [&](std::int64_t i) { records.parse(*made.records()[std::size_t(i)]); });
}

gpuviz::record::PinnedCopies::Moment moment_of(gpuviz::record::Session& session) {
    return {gpuviz::record::now_ns(),
            {.stack = session.capture_stack(), .thread = gpuviz::record::current_thread_id()}};
}

void copy_pinned(gpuviz::record::Session& session, std::uint64_t stream, std::uint64_t address,
                 std::uint64_t bytes, std::uint32_t correlation, bool reads) {
    using gpuviz::record::AccessMode;
    const gpuviz::record::PinnedCopies::Copy copy{stream, address, bytes, correlation};
    gpuviz::record::PageGuard* const guard = session.page_guard();
    if (reads) {
        session.pinned_copies()->copied(copy, moment_of(session));
    } else if (guard == nullptr) {
        session.pinned_copies()->filled(copy);
    }
    if (guard != nullptr) {
        guard->protect(copy, reads ? AccessMode::read : AccessMode::write);
    }
}

void wait_for_pinned(gpuviz::record::Session& session, std::optional<std::uint64_t> stream,
                     std::optional<std::uint64_t> event) {
    using Kind = gpuviz::record::StreamCall::Kind;
    if (gpuviz::record::PageGuard* const guard = session.page_guard()) {
        guard->lift_all();
    }
    const Kind kind = event    ? Kind::event_synchronize
                      : stream ? Kind::stream_synchronize
                               : Kind::device_synchronize;
    session.pinned_copies()->waits(
        {.kind = kind, .stream = stream.value_or(0), .event = event.value_or(0)},
        moment_of(session));
}

void enter_cuda_call(gpuviz::record::Session& session) {
    if (session.pinned_copies()->is_watching() && session.pinned_copies()->is_accessed()) {
        session.pinned_copies()->accessed(moment_of(session));
    }
}

bool can_watch_memory() {
    const std::uint64_t memory = 0;
    return gpuviz::record::Watchpoint(std::uint64_t(&memory)).is_counting();
}

void record_pinned(gpuviz::record::Session& session, std::uint64_t stream, std::uint64_t event) {
    session.pinned_copies()->followed(
        {.kind = gpuviz::record::StreamCall::Kind::event_record, .stream = stream, .event = event});
}

// An object whose deallocation captures a stack, like the deallocation of an array.
struct CaptureAtDeath {
    explicit CaptureAtDeath(gpuviz::record::Session& session) : session(session) {}
    CaptureAtDeath(const CaptureAtDeath&) = delete;
    CaptureAtDeath& operator=(const CaptureAtDeath&) = delete;
    ~CaptureAtDeath() { static_cast<void>(session.capture_stack()); }

    gpuviz::record::Session& session;
};

// The number of the graph that a thread works on, as torch keeps one.
thread_local std::int32_t graph_of_thread = -1;
std::int32_t current_graph() { return graph_of_thread; }

// The stack that a thread without frames of Python gets.
std::uint32_t capture_elsewhere(gpuviz::record::Session& session, std::int32_t graph,
                                bool without_waiting) {
    std::uint32_t stack = 0;
    const nb::gil_scoped_release unlocked;
    std::thread([&] {
        graph_of_thread = graph;
        stack = without_waiting ? session.capture_stack_without_waiting() : session.capture_stack();
    }).join();
    return stack;
}

}  // namespace

NB_MODULE(_testing, m) {
    nb::module_::import_("gpuviz._core");  // registers the types

    m.def("push_event", &push_event, "sink"_a, nb::kw_only(), "time_ns"_a, "action"_a = 0,
          "address"_a = 0, "size"_a = 0, "requested_size"_a = 0, "device"_a = 0, "stream"_a = 0,
          "pool"_a = 0, "stack"_a = 0, "thread"_a = 0, "range"_a = 0, "completed"_a = false);
    m.def("push_many", &push_many, "sink"_a, "count"_a, nb::kw_only(), "device"_a = 0,
          "pause_every"_a = 0,
          "Push `count` events whose address is their number, without the GIL, resting 1 ms before "
          "each `pause_every`; returns ns a push.");
    m.def(
        "session_on_unknown_python",
        [](bool misread, std::size_t stack_depth) {
            std::optional<gpuviz::record::FrameLayout> layout;
            if (misread) {
                layout = gpuviz::python::PythonStackWalker::own_layout();
                layout->instruction = layout->previous;
            }
            return new gpuviz::record::Session(
                {}, std::make_unique<gpuviz::python::PythonStackWalker>(stack_depth,
                                                                        std::move(layout)));
        },
        nb::kw_only(), "misread"_a, "stack_depth"_a = 64, nb::rv_policy::take_ownership,
        "A session on a Python whose frames have no known layout, or another than the known.");
    m.def("capture_stack", &gpuviz::record::Session::capture_stack, "session"_a);
    m.def(
        "capture_stack_without_waiting",
        [](gpuviz::record::Session& session, bool with_gil) {
            if (with_gil) {
                return session.capture_stack_without_waiting();
            }
            const nb::gil_scoped_release unlocked;
            return session.capture_stack_without_waiting();
        },
        "session"_a, "with_gil"_a,
        "The stack's id, as an allocator of another framework captures it under its lock.");
    m.def("current_graph", [] { return reinterpret_cast<std::uintptr_t>(&current_graph); });
    m.def(
        "work_on_graph", [](std::int32_t graph) { graph_of_thread = graph; }, "graph"_a,
        "The calling thread works on a graph from now on; -1 for none.");
    m.def("capture_elsewhere", &capture_elsewhere, "session"_a, "graph"_a, "without_waiting"_a,
          "The stack's id in a thread without Python, which works on a graph; -1 for none.");
    m.def(
        "call_elsewhere",
        [](const nb::callable& function) {
            const nb::gil_scoped_release unlocked;
            std::thread([&] {
                const nb::gil_scoped_acquire locked;
                function();
            }).join();
        },
        "function"_a,
        "Call a function that does not raise in a thread of its own, during which the caller runs "
        "no pending calls of the interpreter.");
    m.def(
        "capture_ns",
        [](gpuviz::record::Session& session, std::int64_t count) {
            return mean_ns(count,
                           [&](std::int64_t) { static_cast<void>(session.capture_stack()); });
        },
        "session"_a, "count"_a, "Nanoseconds a capture of the caller's stack takes.");
    nb::class_<CaptureAtDeath>(m, "CaptureAtDeath")
        .def(nb::init<gpuviz::record::Session&>(), "session"_a, nb::keep_alive<1, 2>());
    m.def(
        "call_ns",
        [](std::uintptr_t function, std::uintptr_t argument, std::int64_t count) {
            const auto call = reinterpret_cast<int (*)(std::uintptr_t)>(function);
            return mean_ns(count, [&](std::int64_t) { static_cast<void>(call(argument)); });
        },
        "function"_a, "argument"_a, "count"_a,
        "Nanoseconds a call of the C function at an address takes.");
    m.def("parse_records", &parse_records, "session"_a, "count"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "Parse made-up records of kernels and copies into a session; returns ns a record.");
    nb::class_<gpuviz::testing::BareCupti>(m, "BareCupti",
                                           "CUPTI that records, and nobody who reads it.")
        .def(nb::init<const std::string&, std::optional<std::vector<int>>, bool>(), "library"_a,
             "kinds"_a = nb::none(), "callbacks"_a = false)
        .def("start", &gpuviz::testing::BareCupti::start, nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &gpuviz::testing::BareCupti::stop, nb::call_guard<nb::gil_scoped_release>());
    m.def("copy_pinned", &copy_pinned, "session"_a, nb::kw_only(), "stream"_a, "address"_a,
          "bytes"_a, "correlation"_a, "reads"_a,
          "A call has enqueued a copy that reads pinned memory, or writes it.");
    m.def("enter_cuda_call", &enter_cuda_call, "session"_a,
          "Do what a session does before each CUDA call of the calling thread.");
    m.def("can_watch_memory", &can_watch_memory,
          "Return whether the system lets a thread use the debug registers of the processor.");
    m.def("record_pinned", &record_pinned, "session"_a, nb::kw_only(), "stream"_a, "event"_a,
          "A call has recorded an event.");
    m.def("wait_for_pinned", &wait_for_pinned, "session"_a, nb::kw_only(), "stream"_a = nb::none(),
          "event"_a = nb::none(), "A call is about to wait for a stream, an event or the device.");
    m.def("thread_id", &gpuviz::record::current_thread_id);
}
