#include "clients/library_observer.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/stream_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_library_observer(nb::module_& m) {
    using clients::LibraryObserver;
    nb::class_<LibraryObserver>(m, "LibraryObserver",
                                "Records what a library allocates, as another one reports.")
        .def(nb::init<record::Framework>(), "framework"_a)
        .def(
            "allocated",
            [](LibraryObserver& self, int device, std::uint64_t address, std::uint64_t size,
               nb::handle stream, std::optional<std::uint32_t> stack) {
                self.allocated(device, address, size, stream_handle(stream), stack);
            },
            "device"_a, "address"_a, "size"_a, "stream"_a, "stack"_a = nb::none(),
            "To be called after an allocation; `stream` is as for SharedPool.allocate, and `stack` "
            "an id of Session.add_stack, unless it is the caller's.")
        .def("freed", &LibraryObserver::freed, "device"_a, "address"_a, "stack"_a = nb::none(),
             "To be called before a free.")
        .def("out_of_memory", &LibraryObserver::out_of_memory, "device"_a, "size"_a,
             "To be called after a request that failed.")
        .def("set_session", &LibraryObserver::set_session, "session"_a.none(), "stacks"_a = true,
             "Push the live blocks, and send events to a session, which must outlive this; None "
             "ends it.")
        .def("devices", &LibraryObserver::devices, "Return the devices with events.")
        .def("abandon", &LibraryObserver::abandon);
    m.def(
        "rmm_pool_owner", [] { return record::rmm_owner; },
        "The `owner` of the pool of blocks of RMM's memory resources.");
    m.def(
        "jax_pool_owner", [] { return record::jax_owner; },
        "The `owner` of the pool of what JAX uses, the lowest of all that are no MemPool's.");
}

}  // namespace gpuviz::bindings
