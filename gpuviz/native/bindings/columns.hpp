#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gpuviz::bindings {

// A one-dimensional column that came from NumPy, or any buffer on the host.
template <typename Value>
using Column =
    nanobind::ndarray<const Value, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// Arrays of a table, by the names of its columns.
using Columns = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;

// Sets spans to the values of columns of one length, whose arrays it keeps alive.
class ColumnViews {
  public:
    ColumnViews() = default;
    explicit ColumnViews(Columns table) : table_(std::move(table)) {}

    // A column of the table.
    template <typename Value>
    ColumnViews& take(const char* name, std::span<const Value>& values) {
        Column<Value> column;
        if (!nanobind::try_cast(nanobind::object(table_[name]), column, false)) {
            throw nanobind::type_error(("column '" + std::string(name) +
                                        "' is no contiguous array of one dimension and of its type")
                                           .c_str());
        }
        return take(name, column, values);
    }

    template <typename Value>
    ColumnViews& take(const char* name, const Column<Value>& column,
                      std::span<const Value>& values) {
        const std::size_t rows = rows_.value_or(column.shape(0));
        if (column.shape(0) != rows) {
            throw std::invalid_argument("column '" + std::string(name) + "' has " +
                                        std::to_string(column.shape(0)) + " rows, expected " +
                                        std::to_string(rows) + " as in the others");
        }
        rows_ = rows;
        owners_.append(nanobind::cast(column));
        values = {column.data(), rows};
        return *this;
    }

  private:
    Columns table_;
    nanobind::list owners_;
    std::optional<std::size_t> rows_;
};

template <typename Value, typename Vector = std::vector<Value>>
Vector to_vector(const Column<Value>& column) {
    return {column.data(), column.data() + column.shape(0)};
}

// A NumPy array that owns the values.
template <typename Value, typename Allocator>
nanobind::object to_numpy(std::vector<Value, Allocator> values) {
    using Values = std::vector<Value, Allocator>;
    auto* owned = new Values(std::move(values));
    const nanobind::capsule owner(
        owned, [](void* pointer) noexcept { delete static_cast<Values*>(pointer); });
    const std::size_t shape[1] = {owned->size()};
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, Value, nanobind::ndim<1>>(
        owned->data(), 1, shape, owner));
}

// A NumPy array of one field of each row.
template <typename Row, typename Field>
nanobind::object to_numpy(const std::vector<Row>& rows, Field field) {
    std::vector<decltype(field(rows.front()))> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(field(row));
    return to_numpy(std::move(values));
}

}  // namespace gpuviz::bindings
