#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::allocator {

// A stream whose work reads or writes a block of pinned host memory.
struct HostUse {
    device::Device* device;
    device::StreamHandle stream;

    bool operator==(const HostUse&) const = default;
};

// Pinned host memory from one call of the driver; never split or merged.
struct HostBlock {
    device::Address address;
    std::uint64_t size;
    std::uint64_t requested_size = 0;
    bool allocated = false;
    bool captured = false;          // a graph may use it at any later time
    std::vector<HostUse> uses{};    // since its allocation, without an event yet
    std::uint32_t event_count = 0;  // that it waits for

    // Whether it must not be reused yet once it is free.
    [[nodiscard]] bool is_used() const noexcept {
        return captured || event_count != 0 || !uses.empty();
    }
    void add_use(const HostUse& use) {
        if (std::find(uses.begin(), uses.end(), use) == uses.end()) {
            uses.push_back(use);
        }
    }
};

}  // namespace gpuviz::allocator
