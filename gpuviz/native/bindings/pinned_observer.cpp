#include "clients/pinned_observer.hpp"

#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_pinned_observer(nb::module_& m) {
    using clients::PinnedObserver;
    nb::class_<PinnedObserver>(
        m, "PinnedObserver",
        "Records the pinned host memory that a program takes from an allocator of its own.")
        .def(nb::init<>())
        .def("allocated", &PinnedObserver::allocated, "address"_a, "size"_a, "requested_size"_a,
             "To be called after an allocation; `size` is the bytes of the block.")
        .def("freed", &PinnedObserver::freed, "address"_a, "To be called before a free.")
        .def("set_session", &PinnedObserver::set_session, "session"_a.none(), "stacks"_a = true,
             "Push the live blocks, and send events to a session, which must outlive this; None "
             "ends it.")
        .def("abandon", &PinnedObserver::abandon, "To be called in the child of a fork.");
}

}  // namespace gpuviz::bindings
