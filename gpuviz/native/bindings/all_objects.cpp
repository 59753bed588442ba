#include "bindings/all_objects.hpp"

#include <dlfcn.h>
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace gpuviz::bindings {

std::vector<PyObject*> all_objects() {
    std::vector<PyObject*> objects;
    using Visitor = int (*)(PyObject*, void*);
    using VisitObjects = void (*)(Visitor, void*);
    // Public from Python 3.12 on, but not in the stable ABI.
    if (auto* const visit =
            reinterpret_cast<VisitObjects>(dlsym(RTLD_DEFAULT, "PyUnstable_GC_VisitObjects"))) {
        visit(
            [](PyObject* object, void* found) {
                static_cast<std::vector<PyObject*>*>(found)->push_back(object);
                return 1;
            },
            &objects);
        return objects;
    }
    const nb::object found = nb::module_::import_("gc").attr("get_objects")();
    objects.reserve(nb::len(found));
    for (std::size_t each = 0; each < nb::len(found); ++each) {
        objects.push_back(PyList_GetItem(found.ptr(), static_cast<Py_ssize_t>(each)));
    }
    return objects;
}

}  // namespace gpuviz::bindings
