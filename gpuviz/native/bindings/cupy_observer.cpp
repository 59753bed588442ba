#include "cupy/cupy_observer.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>

#include "bindings/bindings.hpp"
#include "cupy/malloc_function.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using cupy::CupyObserver;

void bind_cupy_observer(nb::module_& m) {
    nb::class_<CupyObserver>(m, "CupyObserver", nb::is_weak_referenceable())
        .def(
            "__init__",
            [](CupyObserver* self, const nb::object& memory_module,
               const nb::object& runtime_module, const nb::object& stream_module,
               nb::callable current_device, nb::callable current_stream, nb::callable allocator,
               nb::object total_bytes, nb::object total_bytes_of, nb::object out_of_memory,
               std::uintptr_t context_device) {
                new (self) CupyObserver(
                    memory_module,
                    cupy::CupyState(runtime_module, stream_module, std::move(current_device),
                                    std::move(current_stream), context_device),
                    std::move(allocator), std::move(total_bytes), std::move(total_bytes_of),
                    std::move(out_of_memory));
            },
            "memory_module"_a, "runtime_module"_a, "stream_module"_a, "current_device"_a,
            "current_stream"_a, "allocator"_a, "total_bytes"_a.none(),
            "total_bytes_of"_a.none() = nb::none(), "out_of_memory"_a.none() = nb::none(),
            "context_device"_a = 0,
            nb::sig("def __init__(self, memory_module: object, runtime_module: object, "
                    "stream_module: object, current_device: typing.Callable[[], int], "
                    "current_stream: typing.Callable[[], int], "
                    "allocator: typing.Callable[[int], typing.Any], "
                    "total_bytes: typing.Callable[[], int] | None, "
                    "total_bytes_of: typing.Callable[[typing.Any], typing.Callable[[], int] | "
                    "None] | None = None, "
                    "out_of_memory: typing.Callable[[BaseException, int, int], None] | None = "
                    "None, context_device: int = 0) -> None"),
            "`context_device` is as for CupyAllocator.")
        .def("set_session", &CupyObserver::set_session, "session"_a.none(), "stacks"_a = true)
        .def("devices", &CupyObserver::devices,
             "Return the devices on which it has allocated memory.")
        .def("abandon", &CupyObserver::abandon);

    m.def("observed_malloc", &cupy::malloc_function<CupyObserver>, "make"_a,
          nb::sig("def observed_malloc(make: typing.Callable[[], CupyObserver]) -> "
                  "typing.Callable[[int], typing.Any]"),
          "Return a function for cupy.cuda.set_allocator; `make` is called at its first use.");
}

}  // namespace gpuviz::bindings
