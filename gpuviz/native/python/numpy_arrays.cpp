#include "python/numpy_arrays.hpp"

namespace gpuviz::python {

namespace {

// The parts of numpy's PyArrayObject and PyArray_Descr that are the same in all versions.
struct NumpyDescription {
    PyObject head;
    PyObject* scalar_type;
    char kind, type, byte_order, flags;
    int type_number;
};
struct NumpyArray {
    PyObject head;
    PyObject** data;
    int dimensions_count;
    Py_ssize_t* dimensions;
    Py_ssize_t* strides;
    PyObject* base;
    NumpyDescription* description;
};
constexpr int kNumpyObject = 17;

}  // namespace

void visit_array(PyObject* array, visitproc visit, void* argument) {
    const auto* const fields = reinterpret_cast<const NumpyArray*>(array);
    if (fields->base != nullptr) {
        visit(fields->base, argument);
        return;
    }
    if (fields->description == nullptr || fields->description->type_number != kNumpyObject ||
        fields->data == nullptr) {
        return;
    }
    Py_ssize_t count = 1;
    for (int each = 0; each < fields->dimensions_count; ++each) {
        count *= fields->dimensions[each];
    }
    for (Py_ssize_t each = 0; each < count; ++each) {
        if (fields->data[each] != nullptr) {
            visit(fields->data[each], argument);
        }
    }
}

}  // namespace gpuviz::python
