#include "analysis/overlap.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/covered.hpp"
#include "analysis/earliest_times.hpp"
#include "analysis/event_times.hpp"
#include "analysis/idle_gaps.hpp"
#include "analysis/value_numbers.hpp"
#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using analysis::Lane;

namespace {

using LaneFields = nb::typed<nb::dict, nb::str, std::int64_t>;

LaneFields lane_fields(const Lane& lane) {
    LaneFields fields;
    fields["device"] = lane.device;
    if (lane.stream) fields["stream"] = *lane.stream;
    fields["start"] = lane.window.begin;
    fields["end"] = lane.window.end;
    fields["count"] = lane.times.count;
    fields["sum_ns"] = lane.times.sum;
    fields["busy_ns"] = lane.times.busy;
    fields["kernel_ns"] = lane.times.kernel;
    fields["copy_ns"] = lane.times.copy;
    fields["device_copy_ns"] = lane.times.device_copy;
    fields["kernel_copy_ns"] = lane.times.kernel_copy;
    fields["kernel_kernel_ns"] = lane.times.kernel_kernel;
    fields["idle_host_ns"] = lane.idle.host;
    fields["idle_dependency_ns"] = lane.idle.dependency;
    fields["idle_synchronization_ns"] = lane.idle.synchronization;
    fields["idle_allocation_ns"] = lane.idle.allocation;
    fields["idle_unrecorded_event_ns"] = lane.idle.unrecorded_event;
    fields["idle_gpu_busy_ns"] = lane.idle.gpu_busy;
    fields["idle_unknown_ns"] = lane.idle.unknown;
    return fields;
}

// The rows that both analyses read, and what keeps their arrays alive.
struct Rows {
    analysis::ActivityRows activities;
    analysis::HostCallRows calls;
    analysis::SynchronizationRows synchronizations;
    ColumnViews views[3];

    Rows(const Columns& activity_columns, const Columns& call_columns,
         const Columns& synchronization_columns)
        : views{ColumnViews(activity_columns), ColumnViews(call_columns),
                ColumnViews(synchronization_columns)} {
        views[0]
            .take("time", activities.time)
            .take("end", activities.end)
            .take("work", activities.work)
            .take("device", activities.device)
            .take("stream", activities.stream)
            .take("correlation", activities.correlation);
        views[1]
            .take("time", calls.time)
            .take("end", calls.end)
            .take("kind", calls.kind)
            .take("thread", calls.thread)
            .take("correlation", calls.correlation);
        views[2]
            .take("time", synchronizations.time)
            .take("end", synchronizations.end)
            .take("kind", synchronizations.kind)
            .take("stream", synchronizations.stream)
            .take("event_sync_id", synchronizations.event_sync_id)
            .take("correlation", synchronizations.correlation);
    }
};

nb::typed<nb::list, LaneFields> overlap_of(const Columns& activities, const Columns& calls,
                                           const Columns& synchronizations,
                                           std::optional<std::int64_t> start,
                                           std::optional<std::int64_t> end) {
    const Rows rows(activities, calls, synchronizations);
    std::vector<Lane> lanes;
    {
        const python::GilRelease unlocked;
        lanes = analysis::overlap(rows.activities, rows.calls, rows.synchronizations, start, end);
    }
    nb::typed<nb::list, LaneFields> fields;
    for (const Lane& lane : lanes) fields.append(lane_fields(lane));
    return fields;
}

Columns idle_gaps_of(const Columns& activities, const Columns& calls,
                     const Columns& synchronizations, std::size_t most_rows,
                     std::optional<std::int64_t> start, std::optional<std::int64_t> end) {
    const Rows rows(activities, calls, synchronizations);
    analysis::IdleGaps table;
    {
        const python::GilRelease unlocked;
        table = analysis::idle_gaps(rows.activities, rows.calls, rows.synchronizations, most_rows,
                                    start, end);
    }
    Columns columns;
    columns["device"] = to_numpy(std::move(table.device));
    columns["stream"] = to_numpy(std::move(table.stream));
    columns["time"] = to_numpy(std::move(table.time));
    columns["end"] = to_numpy(std::move(table.end));
    columns["cause"] = to_numpy(std::move(table.cause));
    columns["activity"] = to_numpy(std::move(table.activity));
    return columns;
}

nb::object event_times_of(const Columns& activities, const Columns& calls,
                          const Columns& synchronizations) {
    const Rows rows(activities, calls, synchronizations);
    std::vector<std::int64_t> times;
    {
        const python::GilRelease unlocked;
        times = analysis::event_times(rows.activities, rows.calls, rows.synchronizations);
    }
    return to_numpy(std::move(times));
}

nb::object covered_of(const Columns& parts, const Column<std::int64_t>& begins,
                      const Column<std::int64_t>& ends) {
    analysis::IntervalRows known;
    ColumnViews part_views(parts);
    part_views.take("begin", known.begin).take("end", known.end);
    analysis::IntervalRows wanted;
    ColumnViews views;
    views.take("begin", begins, wanted.begin).take("end", ends, wanted.end);
    analysis::LongColumn<std::int64_t> covered;
    {
        const python::GilRelease unlocked;
        covered = analysis::covered(known, wanted);
    }
    return to_numpy(std::move(covered));
}

nb::object value_numbers_of(const Column<std::uint64_t>& functions, const Columns& blocks,
                            const Columns& accesses) {
    analysis::Contents contents;
    ColumnViews block_views(blocks);
    block_views.take("value", contents.value).take("unseen", contents.unseen);
    analysis::Accesses rows;
    ColumnViews views(accesses);
    views.take("work", rows.work).take("block", rows.block).take("place", rows.place);
    views.take("access", rows.access).take("unseen", rows.unseen);
    analysis::LongColumn<std::uint64_t> numbers;
    {
        const python::GilRelease unlocked;
        numbers = analysis::value_numbers({functions.data(), functions.shape(0)}, contents, rows);
    }
    return to_numpy(std::move(numbers));
}

nb::object earliest_times_of(const Column<std::int64_t>& not_before,
                             const Column<std::uint32_t>& sources,
                             const Column<std::uint32_t>& targets,
                             const Column<std::int64_t>& lags) {
    analysis::Constraints constraints;
    ColumnViews views;
    views.take("source", sources, constraints.source)
        .take("target", targets, constraints.target)
        .take("lag", lags, constraints.lag);
    analysis::LongColumn<std::int64_t> times;
    {
        const python::GilRelease unlocked;
        times = analysis::earliest_times({not_before.data(), not_before.shape(0)}, constraints);
    }
    return to_numpy(std::move(times));
}

}  // namespace

void bind_overlap(nb::module_& m) {
    m.def(
        "overlap", &overlap_of, "activities"_a, "calls"_a, "synchronizations"_a,
        "start"_a = nb::none(), "end"_a = nb::none(),
        "Return the times of each device and, with a key `stream`, of each of its streams, in ns. "
        "`work` is a Work, `kind` of calls a CallKind, of synchronizations a position in "
        "SYNCHRONIZATION_KINDS; see gpuviz/data/codes.py.");
    m.def("idle_gaps", &idle_gaps_of, "activities"_a, "calls"_a, "synchronizations"_a,
          "most_rows"_a, "start"_a = nb::none(), "end"_a = nb::none(),
          "Return the columns of the derived table `idle_gaps`, of the columns that `overlap` "
          "takes. `activity` is a row of those given. Streams that would make it longer than "
          "`most_rows` are left out.");
    m.def(
        "event_times", &event_times_of, "activities"_a, "calls"_a, "synchronizations"_a,
        "Return the times of synchronizations, of the columns that `overlap` takes. Unknown times "
        "of event records (0) are derived: after the call, all activities launched before on the "
        "stream, and the records that the stream waited for; 0 if none is known.");
    m.def("covered", &covered_of, "parts"_a, "begins"_a, "ends"_a,
          "Return how much of each interval is covered by parts, in ns. Those have the columns "
          "begin and end, ascending.");
    m.def("earliest_times", &earliest_times_of, "not_before"_a.noconvert(), "sources"_a.noconvert(),
          "targets"_a.noconvert(), "lags"_a.noconvert(),
          "Return the earliest time of each moment, where each target is at least its lag after "
          "its source. Constraints are sorted by target, and sources precede targets; else "
          "ValueError.");
    m.def(
        "value_numbers", &value_numbers_of, "functions"_a.noconvert(), "blocks"_a, "accesses"_a,
        "Return a number for each work, equal for works that compute the same values: those of an "
        "equal function that read equal values. One of function 0 computes what no other does. "
        "`blocks` has the columns value and unseen; `accesses` work, block, place, access (bits: "
        "1 reads, 2 writes, 4 writes all) and unseen, the number of works until then that may "
        "have written anything.");
}

}  // namespace gpuviz::bindings
