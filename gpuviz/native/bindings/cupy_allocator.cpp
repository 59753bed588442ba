#include "cupy/cupy_allocator.hpp"

#include <cstdint>
#include <utility>

#include "bindings/bindings.hpp"
#include "cupy/malloc_function.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using cupy::CupyAllocator;

void bind_cupy_allocator(nb::module_& m) {
    nb::class_<CupyAllocator>(m, "CupyAllocator")
        .def(
            "__init__",
            [](CupyAllocator* self, nb::object memory_module, nb::object runtime_module,
               nb::object stream_module, nb::callable current_device, nb::callable current_stream,
               nb::callable open_device, nb::callable out_of_memory,
               std::uintptr_t context_device) {
                new (self) CupyAllocator(
                    memory_module,
                    cupy::CupyState(runtime_module, stream_module, std::move(current_device),
                                    std::move(current_stream), context_device),
                    std::move(open_device), std::move(out_of_memory));
            },
            "memory_module"_a, "runtime_module"_a, "stream_module"_a, "current_device"_a,
            "current_stream"_a, "open_device"_a, "out_of_memory"_a, "context_device"_a = 0,
            nb::sig("def __init__(self, memory_module: object, runtime_module: object, "
                    "stream_module: object, current_device: typing.Callable[[], int], "
                    "current_stream: typing.Callable[[], int], "
                    "open_device: typing.Callable[[int], CachingAllocator], "
                    "out_of_memory: typing.Callable[[typing.Any], Exception], "
                    "context_device: int = 0) -> None"),
            "`context_device` is the address of the driver's cuCtxGetDevice; 0 if the current "
            "device may be another than that of the current context.")
        .def("empty_cache", &CupyAllocator::empty_cache, "allocator"_a,
             "Release unused segments to the device, with the caller's stack.")
        .def("set_session", &CupyAllocator::set_session, "session"_a.none(), "stacks"_a = true)
        .def("abandon", &CupyAllocator::abandon)
        .def_prop_ro("is_direct", &CupyAllocator::is_direct,
                     "Whether CuPy's objects are written directly; slower calls build them if not.")
        .def_prop_ro("lost_frees", &CupyAllocator::lost_frees,
                     "Frees that failed and were abandoned.");

    m.def("cupy_malloc", &cupy::malloc_function<CupyAllocator>, "make"_a,
          nb::sig("def cupy_malloc(make: typing.Callable[[], CupyAllocator]) -> "
                  "typing.Callable[[int], typing.Any]"),
          "Return a function for cupy.cuda.set_allocator; `make` is called at its first use.");
}

}  // namespace gpuviz::bindings
