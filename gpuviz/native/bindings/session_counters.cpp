#include "bindings/session_counters.hpp"

#include <cstddef>
#include <cstdint>

#include "record/pinned_copies.hpp"

namespace nb = nanobind;

namespace gpuviz::bindings {

using record::Session;

namespace {

nb::dict dropped_by_action(const Session& session) {
    const record::ActionCounts counts = session.dropped();
    nb::dict named;
    for (std::size_t action = 0; action < record::action_count; ++action) {
        if (counts[action] != 0) {
            named[record::action_names[action].data()] = counts[action];
        }
    }
    return named;
}

std::uint64_t dropped(const Session& session) {
    std::uint64_t total = 0;
    for (const std::uint64_t count : session.dropped()) {
        total += count;
    }
    return total;
}

}  // namespace

void bind_session_counters(nb::class_<Session>& session) {
    session
        .def_prop_ro("stack_method", &Session::stack_method,
                     "How call stacks are read: `frames`, `attributes` (slow) or `none`.")
        .def_prop_ro("running", &Session::running)
        .def_prop_ro("events", &Session::events, "Events stored in columns.")
        .def_prop_ro("dropped", &dropped, "Events lost because a ring was full.")
        .def_prop_ro(
            "activities", [](const Session& session) { return session.log().activities.rows(); },
            "Activities stored in columns.")
        .def_prop_ro(
            "dropped_activities", [](const Session& session) { return session.log().dropped(); },
            "Rows lost of all tables but memory_events.")
        .def_prop_ro("dropped_by_action", &dropped_by_action,
                     nb::sig("def dropped_by_action(self) -> dict[str, int]"),
                     "Events lost, by action (see ACTIONS).")
        .def_prop_ro("bytes", &Session::bytes,
                     "Bytes held by rings, columns that were not taken yet, and stacks.")
        .def_prop_ro(
            "memory_events_ns",
            [](const Session& session) { return session.log().memory_cost.ns(); },
            "Estimated time in ns that memory events, also of host memory, took in the threads "
            "that caused them.")
        .def_prop_ro(
            "host_memory_events",
            [](const Session& session) { return session.log().host_memory_events.rows(); },
            "Events of host memory stored in columns.")
        .def_prop_ro("collector_cpu_ns", &Session::collector_cpu_ns)
        .def_prop_ro(
            "comparison_ns",
            [](Session& session) {
                const record::PinnedCopies* const copies = session.pinned_copies();
                return copies == nullptr ? 0 : copies->cost_ns();
            },
            "Time that comparing and watching pinned memory took.")
        .def_prop_ro(
            "skipped_comparisons",
            [](Session& session) {
                const record::PinnedCopies* const copies = session.pinned_copies();
                return copies == nullptr ? 0 : copies->skipped();
            },
            "Copies whose pinned memory was not compared.")
        .def_prop_ro(
            "unwatched_copies",
            [](Session& session) {
                const record::PinnedCopies* const copies = session.pinned_copies();
                return copies == nullptr ? 0 : copies->unwatched();
            },
            "Copies to pinned memory that was not watched.")
        .def_prop_ro("sampler_cpu_ns", &Session::sampler_cpu_ns)
        .def_prop_ro("start_ns", &Session::start_ns,
                     "Time zero of the columns on CLOCK_MONOTONIC; 0 before the clock has started.")
        .def_prop_ro("wall_start_ns", &Session::wall_start_ns,
                     "The same moment on CLOCK_REALTIME.");
}

}  // namespace gpuviz::bindings
