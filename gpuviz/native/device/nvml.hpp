#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::device {

// The memory of each process that computes on a GPU, from NVIDIA's management library. Empty where
// the library is missing or does not tell, as in most containers.
[[nodiscard]] std::vector<ProcessMemory> compute_processes(const std::string& pci_bus_id);

}  // namespace gpuviz::device
