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

void check_groups(std::span<const std::uint32_t> group, std::size_t count) {
    const auto is_unknown = [count](std::uint32_t each) { return each >= count; };
    if (std::any_of(group.begin(), group.end(), is_unknown)) {
        throw std::invalid_argument("a row is of a group that there is not");
    }
}

// The group of each row, below `count`, and its value.
struct GroupedRows {
    std::span<const std::uint32_t> group;
    std::span<const std::int64_t> values;
    ColumnViews views;

    GroupedRows(const Column<std::uint32_t>& groups, const Column<std::int64_t>& of_rows,
                std::size_t count) {
        views.take("group", groups, group).take("values", of_rows, values);
        check_groups(group, count);
    }
};

Columns group_totals(const Column<std::uint32_t>& group, const Column<std::int64_t>& values,
                     std::size_t groups) {
    const GroupedRows rows(group, values, groups);
    analysis::GroupTotals found;
    {
        const python::GilRelease unlocked;
        found = analysis::group_totals(rows.group, rows.values, groups);
    }
    Columns columns;
    columns["count"] = to_numpy(std::move(found.count));
    columns["sum"] = to_numpy(std::move(found.sum));
    columns["least"] = to_numpy(std::move(found.least));
    columns["greatest"] = to_numpy(std::move(found.greatest));
    return columns;
}

nb::object group_medians(const Column<std::uint32_t>& group, const Column<std::int64_t>& values,
                         std::size_t groups) {
    const GroupedRows rows(group, values, groups);
    std::vector<std::int64_t> found;
    {
        const python::GilRelease unlocked;
        found = analysis::group_medians(rows.group, rows.values, groups);
    }
    return to_numpy(std::move(found));
}

nb::object typical_rows(const Column<std::uint32_t>& group, const Column<std::uint32_t>& first,
                        const Column<std::uint32_t>& second, const Column<std::uint32_t>& third,
                        std::size_t groups) {
    analysis::KeyColumns columns;
    ColumnViews views;
    views.take("group", group, columns[0]).take("first", first, columns[1]);
    views.take("second", second, columns[2]).take("third", third, columns[3]);
    check_groups(columns[0], groups);
    std::vector<std::int64_t> found;
    {
        const python::GilRelease unlocked;
        found = analysis::typical_rows(columns, groups);
    }
    return to_numpy(std::move(found));
}

}  // namespace

void bind_groups(nb::module_& m) {
    m.def("numbered", &numbered, "high"_a.noconvert(), "low"_a.noconvert(),
          "Return a number for each row, the same for equal pairs and counted up as they first "
          "come; and for each number its first row and how many rows have it.");
    m.def("group_totals", &group_totals, "group"_a.noconvert(), "values"_a.noconvert(), "groups"_a,
          "Return count, sum, least and greatest of the values of each group; 0 for groups without "
          "values.");
    m.def("group_medians", &group_medians, "group"_a.noconvert(), "values"_a.noconvert(),
          "groups"_a,
          "Return the median of the values of each group, rounded down; 0 for groups without "
          "values.");
    m.def("typical_rows", &typical_rows, "group"_a.noconvert(), "first"_a.noconvert(),
          "second"_a.noconvert(), "third"_a.noconvert(), "groups"_a,
          "Return the first row of each group with the group's most frequent combination of three "
          "columns; of equally frequent ones, of the one that occurs first.");
}

}  // namespace gpuviz::bindings
