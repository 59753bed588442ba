#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::allocator {

enum class BlockState : std::uint8_t { active_allocated, active_pending_free, inactive };

struct SnapshotBlock {
    device::Address address;
    std::uint64_t size;
    std::uint64_t requested_size;
    BlockState state;
    std::uint32_t stack;
};

// One segment, or one contiguous mapped run of an expandable segment, in the shape of
// torch.cuda.memory_snapshot().
struct SnapshotSegment {
    device::Address address;
    std::uint64_t total_size = 0;
    std::uint64_t allocated_size = 0;
    std::uint64_t active_size = 0;
    std::uint64_t requested_size = 0;
    device::StreamHandle stream;
    std::uint64_t pool;  // the n of the pool's id (0, n)
    int device;
    bool is_small;
    bool is_expandable;
    std::uint32_t stack;
    std::vector<SnapshotBlock> blocks;
};

using Snapshot = std::vector<SnapshotSegment>;  // by address

}  // namespace gpuviz::allocator
