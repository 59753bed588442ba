#include "clients/rmm_observer.hpp"

#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/stream_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_rmm_observer(nb::module_& m) {
    using clients::RmmObserver;
    nb::class_<RmmObserver>(m, "RmmObserver",
                            "Records what a program's memory resources of RMM do.")
        .def(nb::init<>())
        .def(
            "allocated",
            [](RmmObserver& self, int device, std::uint64_t address, std::uint64_t size,
               nb::handle stream) { self.allocated(device, address, size, stream_handle(stream)); },
            "device"_a, "address"_a, "size"_a, "stream"_a,
            "To be called after an allocation; `stream` is as for SharedPool.allocate.")
        .def("freed", &RmmObserver::freed, "device"_a, "address"_a, "To be called before a free.")
        .def("set_session", &RmmObserver::set_session, "session"_a.none(), "stacks"_a = true,
             "Push the live blocks, and send events to a session, which must outlive this; None "
             "ends it.")
        .def("devices", &RmmObserver::devices, "Return the devices with events.")
        .def("abandon", &RmmObserver::abandon);
    m.def(
        "rmm_pool_owner", [] { return record::rmm_owner; },
        "The `owner` of the pool of observed blocks.");
}

}  // namespace gpuviz::bindings
