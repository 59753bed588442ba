#include "analysis/groups.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

std::tuple<nb::object, nb::object, nb::object> numbered(const Column<std::uint32_t>& high,
                                                        const Column<std::uint32_t>& low) {
    std::span<const std::uint32_t> highs;
    std::span<const std::uint32_t> lows;
    ColumnViews views;
    views.take("high", high, highs).take("low", low, lows);
    analysis::Numbering found;
    {
        const python::GilRelease unlocked;
        found = analysis::numbered(highs, lows);
    }
    return {to_numpy(std::move(found.numbers)), to_numpy(std::move(found.first_rows)),
            to_numpy(std::move(found.counts))};
}

Columns group_values(const Column<std::uint32_t>& group, const Column<std::int64_t>& values,
                     std::size_t groups) {
    std::span<const std::uint32_t> numbers;
    std::span<const std::int64_t> numbered_values;
    ColumnViews views;
    views.take("group", group, numbers).take("values", values, numbered_values);
    analysis::GroupValues found;
    {
        const python::GilRelease unlocked;
        if (std::any_of(numbers.begin(), numbers.end(),
                        [&](std::uint32_t each) { return each >= groups; })) {
            throw std::invalid_argument("a row is of a group that there is not");
        }
        found = analysis::group_values(numbers, numbered_values, groups);
    }
    Columns columns;
    columns["count"] = to_numpy(std::move(found.count));
    columns["sum"] = to_numpy(std::move(found.sum));
    columns["least"] = to_numpy(std::move(found.least));
    columns["greatest"] = to_numpy(std::move(found.greatest));
    columns["median"] = to_numpy(std::move(found.median));
    return columns;
}

}  // namespace

void bind_groups(nb::module_& m) {
    m.def("numbered", &numbered, "high"_a.noconvert(), "low"_a.noconvert(),
          "Return a number for each row, the same for equal pairs and counted up as they first "
          "come; and for each number its first row and how many rows have it.");
    m.def("group_values", &group_values, "group"_a.noconvert(), "values"_a.noconvert(), "groups"_a,
          "Return count, sum, least, greatest and median (rounded down) of the values of each "
          "group; 0 for groups without values.");
}

}  // namespace gpuviz::bindings
