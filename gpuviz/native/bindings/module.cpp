#include "bindings/bindings.hpp"

#include "device/device.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The native core of gpuviz: devices, the caching allocator, recording and replay.";
    nb::exception<gpuviz::DeviceError>(m, "DeviceError", PyExc_RuntimeError);
    gpuviz::bind_sink(m);
    gpuviz::bind_record(m);
}
