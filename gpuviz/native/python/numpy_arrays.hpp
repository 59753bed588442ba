#pragma once

#include <Python.h>

namespace gpuviz::python {

// Visits the references of a numpy array that numpy does not show to the garbage collector: its
// base, or the elements of an array of objects.
void visit_array(PyObject* array, visitproc visit, void* argument);

}  // namespace gpuviz::python
