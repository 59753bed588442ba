#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "bindings/bindings.hpp"
#include "device/cuda_captures.hpp"
#include "device/cuda_device.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using device::CudaDevice;
using device::CudaDriver;

void bind_cuda(nb::module_& m) {
    nb::class_<CudaDriver>(m, "CudaDriver")
        .def_static(
            "open", [] { return std::const_pointer_cast<CudaDriver>(CudaDriver::open()); },
            "Return the driver of libcuda.so.1; DeviceError when it is missing or too old.")
        .def_prop_ro("version", &CudaDriver::version,
                     "The CUDA version that the driver supports: 1000 * major + 10 * minor.")
        .def(
            "exchange_capture_mode",
            [](const CudaDriver& driver, int mode) {
                auto exchanged = CUstreamCaptureMode(mode);
                driver.exchange_capture_mode(&exchanged);
                return int(exchanged);
            },
            "mode"_a,
            "Set what the calling thread may do while streams capture, and return what it might.")
        .def(
            "captured_addresses",
            [](const CudaDriver&, device::StreamHandle stream) {
                const auto found = device::captured_addresses(reinterpret_cast<CUstream>(stream));
                return std::pair(found.addresses, found.are_all);
            },
            "stream"_a,
            "Return words that the graph which a stream is capturing uses as addresses, or that "
            "may "
            "be some, and whether it uses no other memory.")
        .def("device_count", &CudaDriver::device_count)
        .def("device_name", &CudaDriver::device_name, "ordinal"_a)
        .def("device_uuid", &CudaDriver::device_uuid, "ordinal"_a,
             "Return the UUID as nvidia-smi prints it after GPU- or MIG-; makes no context.")
        .def("total_memory", &CudaDriver::total_memory, "ordinal"_a,
             "Return the memory of a device in bytes, without creating a context.")
        .def("multiprocessors", &CudaDriver::multiprocessors, "ordinal"_a,
             "Return the number of multiprocessors of a device, without creating a context.")
        .def("memory_bandwidth", &CudaDriver::memory_bandwidth, "ordinal"_a,
             "Return the most bytes per second of a device's memory; 0 if unknown.")
        .def(
            "peer_access",
            [](const CudaDriver& driver, int from, int to) {
                const device::PeerAccess found = driver.peer_access(from, to);
                return std::tuple(found.is_supported, found.performance_rank,
                                  found.has_native_atomics);
            },
            "from_"_a, "to"_a,
            "Return whether a device can access the memory of another one, the rank of that access "
            "(0 is the fastest), and whether it has native atomics; creates no context.");

    nb::class_<CudaDevice, device::Device>(m, "CudaDevice")
        .def(
            "__init__",
            [](CudaDevice* self, std::shared_ptr<CudaDriver> driver, int ordinal) {
                new (self) CudaDevice(std::move(driver), ordinal);
            },
            "driver"_a, "ordinal"_a);
}

}  // namespace gpuviz::bindings
