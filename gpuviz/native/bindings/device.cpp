#include "device/device.hpp"

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "device/offline_device.hpp"
#include "device/recorded_device.hpp"
#include "device/simulated_device.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using device::Device;
using device::OfflineDevice;
using device::RecordedDevice;
using device::SimulatedDevice;

void bind_device(nb::module_& m) {
    nb::exception<device::DeviceError>(m, "DeviceError", PyExc_RuntimeError);

    nb::class_<Device>(m, "Device", "What a caching allocator needs of one GPU.")
        .def_prop_ro("ordinal", &Device::ordinal)
        .def_prop_ro("total_memory", &Device::total_memory, "Bytes of the device.")
        .def(
            "memory_info",
            [](Device& device) {
                // The driver may be busy waiting for a callback that needs the GIL.
                const device::MemoryInfo memory = [&] {
                    const python::GilRelease unlocked;
                    return device.memory_info();
                }();
                return nb::make_tuple(memory.free, memory.total);
            },
            nb::sig("def memory_info(self) -> tuple[int, int]"), "Free and total bytes.")
        .def(
            "processes",
            [](Device& device) {
                nb::list processes;
                for (const device::ProcessMemory& each : device.processes()) {
                    processes.append(nb::make_tuple(each.process, each.used));
                }
                return processes;
            },
            nb::sig("def processes(self) -> list[tuple[int, int]]"),
            "(process id, bytes used) of each process known to use the device.");

    nb::class_<OfflineDevice, Device>(m, "OfflineDevice",
                                      "A device without hardware; its streams are told when to be "
                                      "busy.")
        .def("occupy", &OfflineDevice::occupy, "stream"_a,
             "Keep a stream busy: events recorded on it from now on stay pending.")
        .def("finish", &OfflineDevice::finish, "stream"_a,
             "Let a stream finish; its events complete.")
        .def("is_busy", &OfflineDevice::is_busy, "stream"_a)
        .def("write", &OfflineDevice::write, "address"_a, "size"_a, "value"_a,
             "Set all bytes of a range.")
        .def("finish_all", &OfflineDevice::finish_all, "Let every stream finish.")
        .def_prop_ro("host_used", &OfflineDevice::host_used, "Bytes of pinned memory.")
        .def("refuse_host_beyond", &OfflineDevice::refuse_host_beyond, "used"_a,
             "Refuse pinned memory beyond so many bytes.");

    nb::class_<SimulatedDevice, OfflineDevice>(
        m, "SimulatedDevice",
        "A device with a capacity that hands out addresses as NVIDIA's driver does.")
        .def(nb::init<std::uint64_t, int>(), "capacity"_a, "ordinal"_a = 0)
        .def_prop_ro("used", &SimulatedDevice::used, "Bytes allocated and mapped.")
        .def("refuse_beyond", &SimulatedDevice::refuse_beyond, "used"_a,
             "Refuse what goes beyond so many bytes, though memory_info() tells of more.");

    nb::class_<RecordedDevice, OfflineDevice>(
        m, "RecordedDevice",
        "Answers with a recording's addresses: those of its segment allocations and mappings.")
        .def(
            "__init__",
            [](RecordedDevice* device, std::uint64_t total_memory,
               const Column<device::Address>& segment_addresses,
               const Column<device::Address>& map_addresses) {
                new (device) RecordedDevice(total_memory, to_vector(segment_addresses),
                                            to_vector(map_addresses));
            },
            "total_memory"_a, "segment_addresses"_a, "map_addresses"_a);
}

}  // namespace gpuviz::bindings
