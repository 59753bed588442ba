#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/torch_snapshot.hpp"

namespace gpuviz::formats {

// An event that the trace lacks.
struct TorchRow {
    record::Action action;
    std::int16_t device;
    std::uint64_t address;
    std::int64_t size;
    std::int64_t requested_size;
    std::uint64_t stream;  // raw handle
    std::uint32_t pool;    // as in MemoryEvent
    std::uint32_t stack;
};

// The history inferred from a snapshot's trace and its segments.
struct TorchHistory {
    std::vector<std::int64_t> size;     // of each event: the block's or the segment's
    std::vector<std::uint32_t> pool;    // of each event, as in MemoryEvent
    std::vector<TorchRow> before;       // recreate the state before the trace
    std::vector<TorchRow> after;        // lead from the trace's end to the snapshot's segments
    std::vector<std::uint32_t> owners;  // of each of TorchSnapshot::pools: n of MemoryEvent::pool
    std::int64_t contradictions = 0;    // events that contradict others
};

// Reverts the trace from the segments to the state before it, then replays it. A trace contains
// requested sizes; torch's rules for splitting determine those of the blocks.
[[nodiscard]] TorchHistory torch_history(const TorchSnapshot& snapshot);

}  // namespace gpuviz::formats
