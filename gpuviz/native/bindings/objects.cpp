#include <nanobind/nanobind.h>

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include "bindings/all_objects.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

// A class of the program may be of a metaclass that cannot be hashed.
nb::list object_types() {
    // Making the tuples may start a collection, which frees classes before they are referred to.
    const NoCollection none;
    std::unordered_map<PyTypeObject*, std::size_t> counts;
    for (PyObject* const object : all_objects()) {
        ++counts[Py_TYPE(object)];
    }
    nb::list result;
    for (const auto& [type, count] : counts) {
        result.append(nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(type)), count));
    }
    return result;
}

nb::list objects_of(const nb::list& types) {
    const NoCollection none;
    std::unordered_set<PyObject*> wanted;
    for (const nb::handle each : types) {
        wanted.insert(each.ptr());
    }
    nb::list result;
    for (PyObject* const object : all_objects()) {
        if (wanted.contains(reinterpret_cast<PyObject*>(Py_TYPE(object)))) {
            result.append(nb::borrow(object));
        }
    }
    return result;
}

nb::object fields_of(nb::handle object) {
    PyObject* const fields = PyObject_GenericGetDict(object.ptr(), nullptr);
    if (fields == nullptr) {
        PyErr_Clear();
        return nb::none();
    }
    return nb::steal(fields);
}

}  // namespace

void bind_objects(nb::module_& m) {
    m.def("object_types", &object_types, nb::sig("def object_types() -> list[tuple[type, int]]"),
          "Return the types of the objects that the garbage collector knows, each with how many "
          "there are.");
    m.def("objects_of", &objects_of, "types"_a,
          nb::sig("def objects_of(types: list[type]) -> list[Any]"),
          "Return the objects of exactly these types that the garbage collector knows.\n\n"
          "`gc.get_objects` refers to all objects: meanwhile, `tuple` fails with SystemError in "
          "other threads.");
    m.def("fields_of", &fields_of, "object"_a.none(),
          nb::sig("def fields_of(object: object) -> dict[Any, Any] | None"),
          "Return the __dict__ of an object without running its code; None if it has none.");
}

}  // namespace gpuviz::bindings
