#pragma once

#include <cuda.h>

#include <vector>

#include "device/device.hpp"

namespace gpuviz::device {

// What the nodes of a graph use, as far as the driver tells.
struct CapturedAddresses {
    std::vector<Address> addresses;  // words of kernels' parameters among them that are none
    bool are_all;                    // else a node may use others
};

// Of the graph that a stream is capturing. The driver must be loaded.
[[nodiscard]] CapturedAddresses captured_addresses(CUstream stream);

}  // namespace gpuviz::device
