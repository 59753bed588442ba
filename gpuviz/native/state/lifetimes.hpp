#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state/memory_state.hpp"

namespace gpuviz::state {

// The blocks of a device that are active after the initial events, in the order of their
// allocation. Each column has rows: the one that allocated the block, the one that requested its
// free, and the one that ended it; the number of rows if none did.
struct Lifetimes {
    std::vector<std::int64_t> begin;
    std::vector<std::int64_t> free;
    std::vector<std::int64_t> end;
};

// A block is active until its free is completed, or an event contradicts that it is still there,
// which counts as a request too.
[[nodiscard]] Lifetimes lifetimes(const MemoryColumns& events, std::size_t initial_events,
                                  std::int16_t device);

}  // namespace gpuviz::state
