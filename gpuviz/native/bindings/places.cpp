#include <nanobind/stl/pair.h>

#include <cstdint>
#include <span>
#include <utility>

#include "analysis/alive_blocks.hpp"
#include "analysis/event_places.hpp"
#include "analysis/first_rows.hpp"
#include "analysis/line_runs.hpp"
#include "analysis/long_column.hpp"
#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using analysis::EventPlaces;
using analysis::LongColumn;

namespace {

template <typename Value>
std::span<const Value> span_of(const Column<Value>& column) {
    return {column.data(), column.shape(0)};
}

template <typename Id>
nb::object first_rows_of(const Column<Id>& known, const Column<Id>& wanted) {
    LongColumn<std::int64_t> rows;
    {
        const python::GilRelease unlocked;
        rows = analysis::first_rows(span_of(known), span_of(wanted));
    }
    return to_numpy(std::move(rows));
}

nb::object alive_blocks_of(const Columns& blocks, const Column<std::uint64_t>& address,
                           const Column<std::int64_t>& time) {
    analysis::BlockRows rows;
    ColumnViews block_views(blocks);
    block_views.take("address", rows.address).take("begin", rows.begin).take("end", rows.end);
    analysis::AddressTimes wanted;
    ColumnViews views;
    views.take("address", address, wanted.address).take("time", time, wanted.time);
    LongColumn<std::int64_t> alive;
    {
        const python::GilRelease unlocked;
        alive = analysis::alive_blocks(rows, wanted);
    }
    return to_numpy(std::move(alive));
}

std::pair<nb::object, nb::object> line_runs_of(const Columns& columns,
                                               const Column<std::int64_t>& order) {
    analysis::CausedRows rows;
    ColumnViews views(columns);
    views.take("time", rows.time).take("end", rows.end).take("thread", rows.thread);
    views.take("stack", rows.stack).take("line", rows.line);
    analysis::LineRuns found;
    {
        const python::GilRelease unlocked;
        found = analysis::line_runs(rows, span_of(order));
    }
    return {to_numpy(std::move(found.begin)), to_numpy(std::move(found.end))};
}

template <auto Places>
nb::object places_of(const EventPlaces& scale, const Column<std::int64_t>& times) {
    LongColumn<std::int64_t> places;
    {
        const python::GilRelease unlocked;
        places = (scale.*Places)(span_of(times));
    }
    return to_numpy(std::move(places));
}

}  // namespace

void bind_places(nb::module_& m) {
    constexpr auto first_rows_doc =
        "Return the first row of `known` with each wanted id; -1 if there is none, or for id 0.";
    m.def("first_rows", &first_rows_of<std::uint32_t>, "known"_a.noconvert(),
          "wanted"_a.noconvert(), first_rows_doc);
    m.def("first_rows", &first_rows_of<std::int64_t>, "known"_a.noconvert(), "wanted"_a.noconvert(),
          first_rows_doc);
    m.def("alive_blocks", &alive_blocks_of, "blocks"_a, "address"_a.noconvert(),
          "time"_a.noconvert(),
          "Return the block that begins at each address and lives at the time: of several, the one "
          "that was made last; -1 if there is none. `blocks` has the columns address, begin and "
          "end, which is negative if it was never freed.");
    m.def("line_runs", &line_runs_of, "rows"_a, "order"_a.noconvert(),
          "Return when the run of each row began and ended: the rows with a stack that follow each "
          "other in an order by thread, and are of the same thread and line. `rows` has the "
          "columns time, end, thread, stack and line.");
    nb::class_<EventPlaces>(m, "EventPlaces",
                            "The order of memory events and of the begins and ends of lines of the "
                            "program, as numbers. Lines that begin or end between the same two "
                            "events have an order if they are among those that the scale was made "
                            "with. If one line ends when another begins, both have the same place.")
        .def(
            "__init__",
            [](EventPlaces* self, const Column<std::int64_t>& events,
               const Column<std::int64_t>& begins, const Column<std::int64_t>& ends) {
                const auto times = to_vector<std::int64_t, LongColumn<std::int64_t>>;
                new (self) EventPlaces(times(events), times(begins), times(ends));
            },
            "events"_a, "begins"_a, "ends"_a,
            "Times in ns, ascending; those of begins and ends of lines are distinct.")
        .def_prop_ro("count", &EventPlaces::count, "More than any place.")
        .def(
            "of_events", [](const EventPlaces& scale) { return to_numpy(scale.of_events()); },
            "Return the place of each event, and one after all.")
        .def("before", &places_of<&EventPlaces::before>, "times"_a,
             "Return the places of lines that begin at some times; an event then is in the line.")
        .def("after", &places_of<&EventPlaces::after>, "times"_a,
             "Return the places of lines that end at some times; an event then is in the line.");
}

}  // namespace gpuviz::bindings
