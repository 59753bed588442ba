#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <optional>

// Direct access to the fields of an object of CuPy's extension classes, by byte offset. Offsets are
// found in a sample object whose fields have values that no object contains by chance.
namespace gpuviz::cupy {

template <typename T>
void write_field(PyObject* object, std::size_t offset, T value) noexcept {
    std::memcpy(reinterpret_cast<char*>(object) + offset, &value, sizeof(T));
}

template <typename T>
T read_field(PyObject* object, std::size_t offset) noexcept {
    T value;
    std::memcpy(&value, reinterpret_cast<const char*>(object) + offset, sizeof(T));
    return value;
}

// Replaces a reference in a new object, which has None there.
inline void write_reference(PyObject* object, std::size_t offset, PyObject* stolen) noexcept {
    auto* const previous = read_field<PyObject*>(object, offset);
    write_field(object, offset, stolen);
    Py_XDECREF(previous);
}

// The offset of the only field of `object` with this value.
template <typename T>
std::optional<std::size_t> find_field(nanobind::handle object, T value) {
    const auto bytes = nanobind::cast<std::size_t>(object.type().attr("__basicsize__"));
    std::optional<std::size_t> found;
    for (std::size_t offset = sizeof(PyObject); offset + sizeof(T) <= bytes; offset += sizeof(T)) {
        if (std::memcmp(reinterpret_cast<char*>(object.ptr()) + offset, &value, sizeof(T)) == 0) {
            if (found) {
                return std::nullopt;
            }
            found = offset;
        }
    }
    return found;
}

// The function that allocates an object of a class without calling its constructor.
inline newfunc new_function(nanobind::handle type) {
    return reinterpret_cast<newfunc>(
        PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type.ptr()), Py_tp_new));
}

}  // namespace gpuviz::cupy
