#include "allocator/out_of_memory.hpp"

#include <exception>

#include "bindings/bindings.hpp"
#include "python/allocator_values.hpp"

namespace nb = nanobind;

namespace gpuviz::bindings {

void bind_out_of_memory(nb::module_& m) {
    nb::object type = nb::steal(PyErr_NewExceptionWithDoc(
        "gpuviz._core.OutOfMemoryError",
        "The device, or its share, is full. Carries every number of the message, in bytes.",
        PyExc_MemoryError, nullptr));
    m.attr("OutOfMemoryError") = type;
    nb::register_exception_translator(
        [](const std::exception_ptr& pointer, void* payload) {
            try {
                std::rethrow_exception(pointer);
            } catch (const allocator::OutOfMemory& error) {
                const nb::handle error_type(static_cast<PyObject*>(payload));
                const nb::object raised = python::to_python(error, error_type);
                PyErr_SetObject(error_type.ptr(), raised.ptr());
            }
        },
        type.ptr());
}

}  // namespace gpuviz::bindings
