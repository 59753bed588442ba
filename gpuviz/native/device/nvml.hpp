#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::device {

// The memory of each compute process on a GPU, from NVML. Empty if the library is missing or does
// not report processes, as in most containers.
[[nodiscard]] std::vector<ProcessMemory> compute_processes(const std::string& pci_bus_id);

}  // namespace gpuviz::device
