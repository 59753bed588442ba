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

using Columns = nb::typed<nb::dict, nb::str, nb::any>;

template <typename First, typename Second>
void check_length(const Column<First>& first, const Column<Second>& second) {
    if (first.shape(0) != second.shape(0)) {
        throw std::invalid_argument("the columns have " + std::to_string(first.shape(0)) + " and " +
                                    std::to_string(second.shape(0)) + " rows, expected as many");
    }
}

template <typename Value>
std::span<const Value> view(const Column<Value>& column) {
    return {column.data(), column.shape(0)};
}

std::tuple<nb::object, nb::object, nb::object> numbered(const Column<std::uint32_t>& high,
                                                        const Column<std::uint32_t>& low) {
    check_length(high, low);
    analysis::Numbering found;
    {
        const python::GilRelease unlocked;
        found = analysis::numbered(view(high), view(low));
    }
    return {to_numpy(std::move(found.numbers)), to_numpy(std::move(found.first_rows)),
            to_numpy(std::move(found.counts))};
}

Columns group_values(const Column<std::uint32_t>& group, const Column<std::int64_t>& values,
                     std::size_t groups) {
    check_length(group, values);
    analysis::GroupValues found;
    {
        const python::GilRelease unlocked;
        const auto numbers = view(group);
        if (std::any_of(numbers.begin(), numbers.end(),
                        [&](std::uint32_t each) { return each >= groups; })) {
            throw std::invalid_argument("a row is of a group that there is not");
        }
        found = analysis::group_values(numbers, view(values), groups);
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
