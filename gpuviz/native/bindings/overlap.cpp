#include "analysis/overlap.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/idle_gaps.hpp"
#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using analysis::Lane;

namespace {

using Columns = nb::typed<nb::dict, nb::str, nb::any>;
using LaneFields = nb::typed<nb::dict, nb::str, std::int64_t>;

// The columns of a table; looks at the arrays for as long as it lives.
class TableView {
  public:
    explicit TableView(const Columns& columns) : columns_(columns) {}

    template <typename Value>
    std::span<const Value> column(const char* name) {
        const nb::object array = columns_[name];
        Column<Value> column;
        if (!nb::try_cast(array, column, false)) {
            throw nb::type_error(("column '" + std::string(name) +
                                  "' is no contiguous array of one dimension and of the type of "
                                  "the recording's table")
                                     .c_str());
        }
        owners_.append(array);
        if (owners_.size() == 1) rows_ = column.shape(0);
        if (column.shape(0) != rows_) {
            throw std::invalid_argument("column '" + std::string(name) + "' has " +
                                        std::to_string(column.shape(0)) + " rows, expected " +
                                        std::to_string(rows_) + " as in the others");
        }
        return {column.data(), rows_};
    }

  private:
    Columns columns_;
    nb::list owners_;
    std::size_t rows_ = 0;
};

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
    fields["kernel_copy_ns"] = lane.times.kernel_copy;
    fields["kernel_kernel_ns"] = lane.times.kernel_kernel;
    fields["idle_host_ns"] = lane.idle.host;
    fields["idle_dependency_ns"] = lane.idle.dependency;
    fields["idle_synchronization_ns"] = lane.idle.synchronization;
    fields["idle_allocation_ns"] = lane.idle.allocation;
    fields["idle_unknown_ns"] = lane.idle.unknown;
    return fields;
}

analysis::ActivityRows activity_rows(TableView& table) {
    return {
        .time = table.column<std::int64_t>("time"),
        .end = table.column<std::int64_t>("end"),
        .work = table.column<std::uint8_t>("work"),
        .device = table.column<std::int16_t>("device"),
        .stream = table.column<std::uint32_t>("stream"),
        .correlation = table.column<std::uint32_t>("correlation"),
    };
}

analysis::HostCallRows call_rows(TableView& table) {
    return {
        .time = table.column<std::int64_t>("time"),
        .end = table.column<std::int64_t>("end"),
        .kind = table.column<std::uint8_t>("kind"),
        .thread = table.column<std::uint32_t>("thread"),
        .correlation = table.column<std::uint32_t>("correlation"),
    };
}

analysis::SynchronizationRows synchronization_rows(TableView& table) {
    return {
        .time = table.column<std::int64_t>("time"),
        .end = table.column<std::int64_t>("end"),
        .kind = table.column<std::uint8_t>("kind"),
        .stream = table.column<std::uint32_t>("stream"),
        .event_sync_id = table.column<std::uint64_t>("event_sync_id"),
        .correlation = table.column<std::uint32_t>("correlation"),
    };
}

nb::typed<nb::list, LaneFields> overlap_of(const Columns& activities, const Columns& calls,
                                           const Columns& synchronizations,
                                           std::optional<std::int64_t> start,
                                           std::optional<std::int64_t> end) {
    TableView activity(activities);
    TableView call(calls);
    TableView synchronization(synchronizations);
    const auto activities_rows = activity_rows(activity);
    const auto calls_rows = call_rows(call);
    const auto synchronizations_rows = synchronization_rows(synchronization);
    std::vector<Lane> lanes;
    {
        const python::GilRelease unlocked;
        lanes = analysis::overlap(activities_rows, calls_rows, synchronizations_rows, start, end);
    }
    nb::typed<nb::list, LaneFields> rows;
    for (const Lane& lane : lanes) rows.append(lane_fields(lane));
    return rows;
}

Columns idle_gaps_of(const Columns& activities, const Columns& calls,
                     const Columns& synchronizations, std::size_t most_rows) {
    TableView activity(activities);
    TableView call(calls);
    TableView synchronization(synchronizations);
    const auto activities_rows = activity_rows(activity);
    const auto calls_rows = call_rows(call);
    const auto synchronizations_rows = synchronization_rows(synchronization);
    analysis::IdleGaps table;
    {
        const python::GilRelease unlocked;
        table = analysis::idle_gaps(activities_rows, calls_rows, synchronizations_rows, most_rows);
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

}  // namespace

void bind_overlap(nb::module_& m) {
    m.def(
        "overlap", &overlap_of, "activities"_a, "calls"_a, "synchronizations"_a,
        "start"_a = nb::none(), "end"_a = nb::none(),
        "Return the times of each device and, with a key `stream`, of each of its streams, in ns. "
        "`work` is 0 other, 1 kernel, 2 copy; `kind` of calls 0 other, 1 allocation, 2 blocking, "
        "3 query, of synchronizations 0 record, 1 stream wait, 2 host wait.");
    m.def("idle_gaps", &idle_gaps_of, "activities"_a, "calls"_a, "synchronizations"_a,
          "most_rows"_a,
          "Return the columns of the derived table `idle_gaps`, of the columns that `overlap` "
          "takes. `activity` is a row of those given. Streams that would make it longer than "
          "`most_rows` are left out.");
}

}  // namespace gpuviz::bindings
