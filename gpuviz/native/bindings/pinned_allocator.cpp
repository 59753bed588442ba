#include "cupy/pinned_allocator.hpp"

#include <cstdint>
#include <utility>

#include "bindings/bindings.hpp"
#include "cupy/malloc_function.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using cupy::PinnedAllocator;
using cupy::PinnedMemory;

void bind_pinned_allocator(nb::module_& m) {
    nb::class_<PinnedMemory>(m, "PinnedMemory",
                             "Pinned memory of a cupy.cuda.PinnedMemoryPointer, freed with the "
                             "last reference to it.")
        .def_prop_ro("ptr", &PinnedMemory::address, "Address.")
        .def_prop_ro("size", &PinnedMemory::size, "Size in bytes.")
        .def("__int__", &PinnedMemory::address);

    nb::class_<PinnedAllocator>(m, "PinnedAllocator")
        .def(
            "__init__",
            [](PinnedAllocator* self, nb::object pointer_type, const nb::object& runtime_module,
               const nb::object& stream_module, nb::callable current_device,
               nb::callable current_stream, nb::callable open_host, nb::callable open_device,
               nb::callable refused, std::uintptr_t context_device) {
                new (self) PinnedAllocator(
                    std::move(pointer_type),
                    cupy::CupyState(runtime_module, stream_module, std::move(current_device),
                                    std::move(current_stream), context_device),
                    std::move(open_host), std::move(open_device), std::move(refused));
            },
            nb::kw_only(), "pointer_type"_a, "runtime_module"_a, "stream_module"_a,
            "current_device"_a, "current_stream"_a, "open_host"_a, "open_device"_a, "refused"_a,
            "context_device"_a = 0,
            nb::sig("def __init__(self, *, pointer_type: object, runtime_module: object, "
                    "stream_module: object, current_device: typing.Callable[[], int], "
                    "current_stream: typing.Callable[[], int], "
                    "open_host: typing.Callable[[int], HostAllocator], "
                    "open_device: typing.Callable[[int], CachingAllocator], "
                    "refused: typing.Callable[[str], Exception], "
                    "context_device: int = 0) -> None"),
            "`context_device` is as for CupyAllocator.")
        .def("set_session", &PinnedAllocator::set_session, "session"_a.none(), "stacks"_a = true)
        .def("abandon", &PinnedAllocator::abandon)
        .def_prop_ro("is_direct", &PinnedAllocator::is_direct,
                     "Whether CuPy's pointers are written directly; its constructor is slower.")
        .def_prop_ro("lost_frees", &PinnedAllocator::lost_frees,
                     "Frees that failed and were abandoned.");

    m.def("cupy_malloc_pinned", &cupy::malloc_function<PinnedAllocator>, "make"_a,
          nb::sig("def cupy_malloc_pinned(make: typing.Callable[[], PinnedAllocator]) -> "
                  "typing.Callable[[int], typing.Any]"),
          "Return a function for cupy.cuda.set_pinned_memory_allocator; `make` is called at its "
          "first use.");
}

}  // namespace gpuviz::bindings
