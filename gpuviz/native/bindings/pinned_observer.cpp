#include "record/pinned_observer.hpp"

#include <utility>

#include "bindings/bindings.hpp"
#include "cupy/malloc_function.hpp"
#include "cupy/observed_pinned_pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_pinned_observer(nb::module_& m) {
    using cupy::ObservedPinnedMemory;
    using cupy::ObservedPinnedPool;
    using record::PinnedObserver;
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

    nb::class_<ObservedPinnedMemory>(m, "ObservedPinnedMemory",
                                     "Pinned memory of a program's own pool, to which it returns "
                                     "with the last reference to it.")
        .def_prop_ro("ptr", &ObservedPinnedMemory::address, "Address.")
        .def_prop_ro("size", &ObservedPinnedMemory::size, "Size in bytes.")
        .def("__int__", &ObservedPinnedMemory::address);

    nb::class_<ObservedPinnedPool>(m, "ObservedPinnedPool")
        .def(
            "__init__",
            [](ObservedPinnedPool* self, nb::object observer, nb::callable allocator,
               nb::object pointer_type) {
                new (self) ObservedPinnedPool(std::move(observer), std::move(allocator),
                                              std::move(pointer_type));
            },
            "observer"_a, "allocator"_a, "pointer_type"_a,
            nb::sig("def __init__(self, observer: PinnedObserver, "
                    "allocator: typing.Callable[[int], typing.Any], pointer_type: object) -> None"),
            "`pointer_type` is cupy.cuda.PinnedMemoryPointer.");

    m.def("observed_pinned_malloc", &cupy::malloc_function<ObservedPinnedPool>, "make"_a,
          nb::sig("def observed_pinned_malloc(make: typing.Callable[[], ObservedPinnedPool]) -> "
                  "typing.Callable[[int], typing.Any]"),
          "Return a function for cupy.cuda.set_pinned_memory_allocator; `make` is called at its "
          "first use.");
}

}  // namespace gpuviz::bindings
