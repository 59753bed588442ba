#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "record/columns.hpp"

namespace gpuviz::bindings {

template <typename Value>
constexpr auto number_type() {
    if constexpr (std::is_enum_v<Value>) {
        return std::underlying_type_t<Value>{};
    } else {
        return Value{};
    }
}

// NumPy arrays over the columns of a chunk, without a copy; a capsule that they share owns it.
template <typename Row>
nanobind::dict to_arrays(record::Columns<Row>&& columns) {
    auto owned = std::make_unique<record::Columns<Row>>(std::move(columns));
    const record::Columns<Row>* chunk = owned.get();
    const nanobind::capsule owner(
        owned.get(), [](void* held) noexcept { delete static_cast<record::Columns<Row>*>(held); });
    static_cast<void>(owned.release());
    nanobind::dict arrays;
    chunk->for_each_column([&]<typename Value>(const char* name, Value* values) {
        using Number = decltype(number_type<Value>());
        arrays[name] = nanobind::ndarray<nanobind::numpy, Number, nanobind::ndim<1>>(
            reinterpret_cast<Number*>(values), {chunk->rows()}, owner);
    });
    return arrays;
}

}  // namespace gpuviz::bindings
