#pragma once

#include <cstdint>

#include "allocator/size_classes.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::torch {

// Whether an event of torch's trace is of a large pool, inferred from its size: by torch's rules
// for blocks and segments; pages of a large pool have 20 MiB.
[[nodiscard]] constexpr bool is_large_by_size(record::Action action, std::uint64_t size) noexcept {
    switch (action) {
        case record::Action::segment_alloc:
        case record::Action::segment_free:
        case record::Action::segment_map:
            return size != allocator::kSmallBuffer;
        case record::Action::segment_unmap:
            return size % (20 * allocator::kMiB) == 0;
        default:
            return size > allocator::kSmallSize;
    }
}

}  // namespace gpuviz::torch
