#include "bindings/stream_handle.hpp"

#include "device/cuda_device.hpp"
#include "record/thread_id.hpp"

namespace nb = nanobind;

namespace gpuviz::bindings {

using device::StreamHandle;

namespace {

// The driver's handles CU_STREAM_LEGACY, which denotes the same stream as 0, and
// CU_STREAM_PER_THREAD.
constexpr StreamHandle kLegacy = 0;
constexpr StreamHandle kLegacyAlias = 1;
constexpr StreamHandle kPerThread = 2;

}  // namespace

StreamHandle stream_handle(nb::handle stream) {
    if (PyLong_Check(stream.ptr())) {
        return nb::cast<StreamHandle>(stream);
    }
    static PyObject* const protocol = PyUnicode_InternFromString("__cuda_stream__");
    const nb::object described =
        nb::steal(PyObject_CallMethodObjArgs(stream.ptr(), protocol, nullptr));
    if (!described.is_valid()) {
        throw nb::python_error();
    }
    const auto handle = nb::cast<StreamHandle>(nb::int_(described[1]));
    switch (handle) {
        case kLegacyAlias:
            return kLegacy;
        case kPerThread:
            return device::per_thread_stream(record::current_thread_id());
        default:
            return handle;
    }
}

}  // namespace gpuviz::bindings
