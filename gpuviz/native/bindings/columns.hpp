#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace gpuviz::bindings {

// A one-dimensional column that came from NumPy, or any buffer on the host.
template <typename Value>
using Column =
    nanobind::ndarray<const Value, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <typename Value>
std::vector<Value> to_vector(const Column<Value>& column) {
    return {column.data(), column.data() + column.shape(0)};
}

// A NumPy array that owns the values.
template <typename Value>
nanobind::object to_numpy(std::vector<Value> values) {
    auto* owned = new std::vector<Value>(std::move(values));
    const nanobind::capsule owner(
        owned, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    const std::size_t shape[1] = {owned->size()};
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, Value, nanobind::ndim<1>>(
        owned->data(), 1, shape, owner));
}

}  // namespace gpuviz::bindings
