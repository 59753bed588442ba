#include "packing/packing.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

using packing::Effort;

// Such as KeyboardInterrupt.
void let_signals_through() {
    const python::GilAcquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Effort::Clock::time_point after(double seconds) {
    constexpr double a_year = 3.2e7;
    return Effort::Clock::now() + std::chrono::duration_cast<Effort::Clock::duration>(
                                      std::chrono::duration<double>(std::min(seconds, a_year)));
}

std::tuple<nb::object, Columns> pack(const Column<std::int64_t>& begin,
                                     const Column<std::int64_t>& end,
                                     const Column<std::int64_t>& size, double seconds) {
    std::span<const std::int64_t> begins;
    std::span<const std::int64_t> ends;
    std::span<const std::int64_t> sizes;
    ColumnViews views;
    views.take("begin", begin, begins).take("end", end, ends).take("size", size, sizes);
    packing::Packing found;
    {
        const python::GilRelease unlocked;
        Effort effort(after(seconds), let_signals_through);
        found = packing::pack(begins, ends, sizes, effort);
    }
    Columns numbers;
    numbers["load"] = found.load;
    numbers["load_time"] = found.load_time;
    numbers["height"] = found.height;
    return {to_numpy(std::move(found.offsets)), numbers};
}

}  // namespace

void bind_packing(nb::module_& m) {
    m.def(
        "pack", &pack, "begin"_a.noconvert(), "end"_a.noconvert(), "size"_a.noconvert(),
        "seconds"_a,
        "Return offsets of blocks that exist from their begin until before their end, as low as "
        "found in this time; and `load`, the most bytes that exist at once, first after the begin "
        "at `load_time`, with the `height` that the offsets need.");
}

}  // namespace gpuviz::bindings
