#pragma once

#include <nanobind/nanobind.h>

namespace gpuviz {

// `owner.malloc` as a Python function of one argument. A plain C function is called several times
// faster than a bound method. The owner lives for ever from then on, since memory that it hands out
// may be freed at any time up to the end of the process.
template <typename Owner>
nanobind::object malloc_function(nanobind::handle_t<Owner> object) {
    object.inc_ref();
    Owner& owner = *nanobind::inst_ptr<Owner>(object);
    static constexpr const char* kCapsule = "gpuviz.malloc";
    static PyMethodDef definition{
        "malloc",
        [](PyObject* self, PyObject* size) -> PyObject* {
            return static_cast<Owner*>(PyCapsule_GetPointer(self, kCapsule))->malloc(size);
        },
        METH_O, "malloc(size)\n--\n\nReturn `size` bytes as a cupy.cuda.MemoryPointer."};
    const nanobind::object self = nanobind::steal(PyCapsule_New(&owner, kCapsule, nullptr));
    return nanobind::steal(PyCFunction_New(&definition, self.ptr()));
}

}  // namespace gpuviz
