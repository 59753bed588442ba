#include "analysis/busy_times.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

using Times = nb::typed<nb::dict, nb::str, std::int64_t>;

// The parts of a union that can still change take 4 MiB.
constexpr std::size_t usual_parts = std::size_t{1} << 18;

// So few are added in less than a millisecond, and a thread that computes in Python returns the GIL
// after 5 ms.
constexpr std::size_t few_rows = 4096;

void add_rows(analysis::BusyTimes& self, const Columns& columns) {
    analysis::BusyRows rows;
    ColumnViews views(columns);
    views.take("time", rows.time)
        .take("end", rows.end)
        .take("device", rows.device)
        .take("is_kernel", rows.is_kernel)
        .take("is_copy", rows.is_copy);
    std::optional<python::GilRelease> unlocked;
    if (rows.time.size() > few_rows) unlocked.emplace();
    self.add(rows);
}

Times times_of(const analysis::BusyTimes& self, std::int16_t device) {
    static const analysis::DeviceBusyTimes nothing(usual_parts);
    const auto known = self.devices().find(device);
    const auto& found = known == self.devices().end() ? nothing : known->second;
    const std::int64_t apart = found.kernels.length() + found.copies.length();
    Times times;
    times["activities"] = found.activities;
    times["start_ns"] = found.window.begin;
    times["end_ns"] = found.window.end;
    times["busy_ns"] = found.any.length();
    times["kernel_ns"] = found.kernels.length();
    times["copy_ns"] = found.copies.length();
    times["kernel_copy_ns"] = apart - found.either.length();
    times["uncounted_ns"] =
        std::max({found.any.uncounted(), found.kernels.uncounted() + found.copies.uncounted(),
                  found.either.uncounted()});
    return times;
}

std::size_t parts_of(const analysis::BusyTimes& self) {
    std::size_t parts = 0;
    for (const auto& [device, times] : self.devices()) parts = std::max(parts, times.any.parts());
    return parts;
}

}  // namespace

void bind_busy_times(nb::module_& m) {
    nb::class_<analysis::BusyTimes>(
        m, "BusyTimes",
        "How long the GPUs were busy, as activities are added roughly in order of time. Of each "
        "device, the last `most_parts` separate parts of the time can still change; what begins "
        "before them is not counted. Not thread-safe.")
        .def(nb::init<std::size_t>(), "most_parts"_a = usual_parts)
        .def("add", &add_rows, "activities"_a,
             "Add activities: the columns `time` and `end` in ns, `device`, and `is_kernel` and "
             "`is_copy`, 0 or 1. Costs time for them and for the parts that they reach.")
        .def("of", &times_of, "device"_a,
             "Return how many activities a device had, the start of the first and the end of the "
             "last, and the time in ns in which any ran, a kernel, a copy, and both; "
             "`uncounted_ns` bounds the error.")
        .def(
            "devices",
            [](const analysis::BusyTimes& self) {
                nb::typed<nb::list, std::int16_t> ordinals;
                for (const auto& [device, times] : self.devices()) ordinals.append(device);
                return ordinals;
            },
            "Return the ordinals of the devices seen, ascending.")
        .def_prop_ro("parts", &parts_of, "The most separate parts kept of a device.");
}

}  // namespace gpuviz::bindings
