#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gpuviz::record {

// A column of a table: its name (gpuviz/data/tables.py) and the member of a row.
template <typename Row, typename Value>
struct Field {
    const char* name;
    Value Row::* member;
    using type = Value;
};

// Rows of one table stored by column, in one allocation. `Row::fields` is a tuple of Field in the
// order of the table's columns.
template <typename Row>
class Columns {
    static constexpr auto fields = Row::fields();
    static constexpr std::size_t count = std::tuple_size_v<decltype(fields)>;
    template <std::size_t column>
    using Value = typename std::tuple_element_t<column, decltype(fields)>::type;

  public:
    static constexpr std::size_t bytes_per_row =
        []<std::size_t... column>(std::index_sequence<column...>) {
            return (sizeof(Value<column>) + ...);
        }(std::make_index_sequence<count>());

    // Reserves `capacity` rows; pages are not touched until rows are written.
    explicit Columns(std::size_t capacity) : capacity_(capacity) {
        std::size_t end = 0;
        for_each_index([&]<std::size_t column> {
            starts_[column] = end;
            end += aligned(capacity * sizeof(Value<column>));
        });
        storage_ = std::make_unique_for_overwrite<std::byte[]>(end);
    }

    // The rows of `other`, without unused capacity.
    [[nodiscard]] static Columns tight_copy(const Columns& other) {
        Columns copy(other.rows_);
        for_each_index([&]<std::size_t column> {
            std::copy_n(other.template values<column>(), other.rows_,
                        copy.template values<column>());
        });
        copy.rows_ = other.rows_;
        return copy;
    }

    // Needs rows() < capacity().
    void append(const Row& row) noexcept {
        for_each_index([&]<std::size_t column> {
            values<column>()[rows_] = row.*std::get<column>(fields).member;
        });
        ++rows_;
    }
    void clear() noexcept { rows_ = 0; }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return rows_ * bytes_per_row; }

    // Calls visit(name, pointer to the first of rows() values) for each column in table order.
    template <typename Visit>
    void for_each_column(Visit&& visit) const {
        for_each_index(
            [&]<std::size_t column> { visit(std::get<column>(fields).name, values<column>()); });
    }

  private:
    static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

    template <typename Visit>
    static void for_each_index(Visit&& visit) {
        [&]<std::size_t... column>(std::index_sequence<column...>) {
            (visit.template operator()<column>(), ...);
        }(std::make_index_sequence<count>());
    }

    template <std::size_t column>
    [[nodiscard]] Value<column>* values() const noexcept {
        return reinterpret_cast<Value<column>*>(storage_.get() + starts_[column]);
    }

    std::size_t capacity_;
    std::size_t rows_ = 0;
    std::array<std::size_t, count> starts_{};
    std::unique_ptr<std::byte[]> storage_;
};

}  // namespace gpuviz::record
