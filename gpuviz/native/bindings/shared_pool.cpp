#include "clients/shared_pool.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/stream_handle.hpp"
#include "clients/torch_functions.hpp"
#include "python/allocator_values.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using allocator::CachingAllocator;
using clients::SharedPool;
using python::GilAcquire;
using python::GilRelease;

namespace {

// Neither is ever released: the pool lives as long as the process.
clients::Interpreter interpreter(nb::callable open_device, nb::callable out_of_memory) {
    const nb::handle open = open_device.release();
    const nb::handle explain = out_of_memory.release();
    return {
        .open_device =
            [open](int device) {
                const GilAcquire acquire;
                nb::object opened = open(device);
                auto* const allocator = nb::cast<CachingAllocator*>(opened);
                opened.release();
                return allocator;
            },
        .run_unlocked =
            [](const std::function<void()>& call) {
                if (!python::holds_gil()) {
                    call();
                    return;
                }
                const GilRelease unlocked;
                call();
            },
        .describe = [explain](const allocator::OutOfMemory& error) -> std::string {
            const GilAcquire acquire;
            try {
                const nb::object type =
                    nb::module_::import_("gpuviz._core").attr("OutOfMemoryError");
                return nb::cast<std::string>(explain(python::to_python(error, type)));
            } catch (const std::exception&) {
                return error.what();
            }
        },
    };
}

}  // namespace

void bind_shared_pool(nb::module_& m) {
    nb::class_<SharedPool>(m, "SharedPool",
                           "The caching allocators of the process, for other libraries.")
        .def(
            "__init__",
            [](SharedPool* self, nb::callable open_device, nb::callable out_of_memory) {
                new (self)
                    SharedPool(interpreter(std::move(open_device), std::move(out_of_memory)));
                nb::find(self).release();
            },
            "open_device"_a, "out_of_memory"_a,
            nb::sig("def __init__(self, open_device: typing.Callable[[int], CachingAllocator], "
                    "out_of_memory: typing.Callable[[typing.Any], str]) -> None"),
            "`out_of_memory(error)` returns the text of an OutOfMemoryError.")
        .def(
            "allocate",
            [](SharedPool& self, std::uint64_t size, int device, nb::handle stream,
               record::Framework framework) {
                return self.allocate(size, device, stream_handle(stream), framework);
            },
            "size"_a, "device"_a, "stream"_a, "framework"_a = record::Framework::none,
            "`stream` is an object with `__cuda_stream__`, or a handle of this module.")
        .def("free", &SharedPool::free, "address"_a, "device"_a)
        .def(
            "free_after",
            [](SharedPool& self, std::uint64_t address, int device, nb::handle last) {
                self.free_after(address, device, stream_handle(last));
            },
            "address"_a, "device"_a, "last"_a,
            "Free memory that was used until now on the stream `last`, given as in `allocate`.")
        .def("set_session", &SharedPool::set_session, "session"_a.none(), "stacks"_a = true,
             nb::call_guard<GilRelease>())
        .def("abandon_after_fork", &SharedPool::abandon_after_fork,
             "In the child of a fork: no longer use devices that were opened before.")
        .def(
            "serve_torch", [](SharedPool& self) { clients::serve_torch(self); },
            "Let the functions for torch that this library exports use this pool.")
        .def_prop_ro("lost_frees", &SharedPool::lost_frees,
                     "Frees that failed and were abandoned.");
}

}  // namespace gpuviz::bindings
