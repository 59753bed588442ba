#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state/memory_state.hpp"

namespace gpuviz::state {

// The blocks of a device that are active after the initial events, in the order of their
// allocation: the row that allocated each, and the row that ended it, the number of rows if none
// did.
struct Lifetimes {
    std::vector<std::int64_t> begin;
    std::vector<std::int64_t> end;
};

// A block is active until its free is completed, or an event contradicts that it is still there.
[[nodiscard]] Lifetimes lifetimes(const MemoryColumns& events, std::size_t initial_events,
                                  std::int16_t device);

}  // namespace gpuviz::state
