#pragma once

#include <Python.h>

#include <memory>

namespace gpuviz::python {

struct DropReference {
    void operator()(PyObject* object) const noexcept { Py_DecRef(object); }
};
// A strong reference. Its end requires the GIL.
using Reference = std::unique_ptr<PyObject, DropReference>;

}  // namespace gpuviz::python
