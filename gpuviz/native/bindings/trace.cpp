#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "formats/chrome_events.hpp"
#include "formats/perfetto_events.hpp"
#include "formats/trace_lanes.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using formats::TraceRows;
using formats::TraceSink;
using python::GilRelease;

namespace {

using Argument = std::tuple<std::uint32_t, bool, Column<std::int64_t>>;
using Write = nb::typed<nb::callable, nb::object(nb::bytes)>;

// Keeps the arrays alive that its spans look at.
struct HeldRows {
    TraceRows rows;
    ColumnViews views;
};

void construct_rows(HeldRows* self, std::uint32_t category, bool contains, bool instant,
                    const Column<std::int64_t>& time, const Column<std::int64_t>& end,
                    const Column<std::uint32_t>& track, const Column<std::uint32_t>& name,
                    const Column<std::uint64_t>& flow, const Column<std::uint64_t>& first_flow,
                    const Column<std::uint32_t>& flow_count,
                    const std::vector<Argument>& arguments) {
    auto held = HeldRows{};
    TraceRows& rows = held.rows;
    rows.category = category;
    rows.contains = contains;
    rows.instant = instant;
    held.views.take("time", time, rows.time)
        .take("end", end, rows.end)
        .take("track", track, rows.track)
        .take("name", name, rows.name);
    const auto take_unless_empty = [&](const char* column, const auto& values, auto& taken) {
        if (values.shape(0) != 0) held.views.take(column, values, taken);
    };
    take_unless_empty("flow", flow, rows.flow);
    take_unless_empty("first_flow", first_flow, rows.first_flow);
    take_unless_empty("flow_count", flow_count, rows.flow_count);
    for (const auto& [argument, is_text, values] : arguments) {
        rows.arguments.push_back({argument, is_text, {}});
        held.views.take("argument", values, rows.arguments.back().values);
    }
    new (self) HeldRows(std::move(held));
}

std::vector<TraceRows> tables_of(const std::vector<const HeldRows*>& held) {
    std::vector<TraceRows> tables;
    for (const HeldRows* each : held) tables.push_back(each->rows);
    return tables;
}

// A signal's exception, such as KeyboardInterrupt, ends the writing as one of `write` does.
TraceSink sink_of(const Write& write) {
    return [&write](std::string_view piece) {
        const python::GilAcquire locked;
        if (!piece.empty()) write(nb::bytes(piece.data(), piece.size()));
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
}

nb::typed<nb::list, nb::any> lanes_of(const std::vector<const HeldRows*>& held) {
    const auto tables = tables_of(held);
    std::vector<std::vector<std::uint32_t>> lanes;
    {
        const GilRelease unlocked;
        lanes = formats::trace_lanes(tables);
    }
    nb::typed<nb::list, nb::any> arrays;
    for (auto& each : lanes) arrays.append(to_numpy(std::move(each)));
    return arrays;
}

void perfetto_rows(const std::vector<const HeldRows*>& held, std::uint32_t sequence,
                   std::int64_t zero_ns, const Write& write) {
    const auto tables = tables_of(held);
    const TraceSink sink = sink_of(write);
    const GilRelease unlocked;
    formats::write_perfetto_rows(tables, {sequence, zero_ns}, sink);
}

void perfetto_counter(std::uint32_t track, const Column<std::int64_t>& time,
                      const Column<std::int64_t>& value, std::uint32_t sequence,
                      std::int64_t zero_ns, const Write& write) {
    formats::TraceCounter counter{track, {}, {}};
    ColumnViews().take("time", time, counter.time).take("value", value, counter.value);
    const TraceSink sink = sink_of(write);
    const GilRelease unlocked;
    formats::write_perfetto_counter(counter, {sequence, zero_ns}, sink);
}

void chrome_rows(const std::vector<const HeldRows*>& held,
                 const std::vector<std::tuple<std::uint64_t, std::uint64_t>>& tracks,
                 std::vector<std::string> names, std::vector<std::string> argument_names,
                 std::vector<std::string> argument_texts, const Write& write) {
    const auto tables = tables_of(held);
    const formats::ChromeTexts texts{std::move(names), std::move(argument_names),
                                     std::move(argument_texts)};
    std::vector<formats::ChromeTrack> places;
    for (const auto& [process, thread] : tracks) places.push_back({process, thread});
    const TraceSink sink = sink_of(write);
    const GilRelease unlocked;
    formats::write_chrome_rows(tables, places, texts, sink);
}

void chrome_counter(std::uint64_t process, const std::string& name,
                    const Column<std::int64_t>& time, const Column<std::int64_t>& value,
                    const Write& write) {
    formats::TraceCounter counter{0, {}, {}};
    ColumnViews().take("time", time, counter.time).take("value", value, counter.value);
    const TraceSink sink = sink_of(write);
    const GilRelease unlocked;
    formats::write_chrome_counter(counter, {process, 0}, name, sink);
}

}  // namespace

void bind_trace(nb::module_& m) {
    nb::class_<HeldRows>(m, "TraceRows",
                         "Rows of one category for a trace viewer, looked at without a copy. Times "
                         "are within 2**60 ns, `end` is never before `time`.")
        .def("__init__", &construct_rows, nb::kw_only(), "category"_a, "contains"_a, "instant"_a,
             "time"_a.noconvert(), "end"_a.noconvert(), "track"_a.noconvert(), "name"_a.noconvert(),
             "flow"_a.noconvert(), "first_flow"_a.noconvert(), "flow_count"_a.noconvert(),
             "arguments"_a);
    m.def("trace_lanes", &lanes_of, "tables"_a,
          "Return for each table the lane of its track, from 0, of each row: what overlaps on a "
          "lane lies within a row whose table `contains` others.");
    m.def("write_perfetto_rows", &perfetto_rows, "tables"_a, "sequence"_a, "zero_ns"_a, "write"_a,
          "Write rows as TracePackets of Perfetto, by time; `zero_ns` is the clock at time 0.");
    m.def("write_perfetto_counter", &perfetto_counter, "track"_a, "time"_a.noconvert(),
          "value"_a.noconvert(), "sequence"_a, "zero_ns"_a, "write"_a,
          "Write the values of a counter as TracePackets of Perfetto.");
    m.def(
        "write_chrome_rows", &chrome_rows, "tables"_a, "tracks"_a, "names"_a, "argument_names"_a,
        "argument_texts"_a, "write"_a,
        "Write rows as events of Chrome's JSON, by time, each after a comma. `tracks` are process "
        "and thread ids, texts are JSON strings.");
    m.def("write_chrome_counter", &chrome_counter, "process"_a, "name"_a, "time"_a.noconvert(),
          "value"_a.noconvert(), "write"_a,
          "Write the values of a counter as events of Chrome's JSON.");
}

}  // namespace gpuviz::bindings
