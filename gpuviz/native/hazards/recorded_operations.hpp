#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hazards/engine.hpp"

namespace gpuviz::hazards {

// The operations of a recording, in the order in which the host issued them. Code in
// gpuviz/data/codes.py explains the columns.
struct RecordedOperations {
    std::span<const std::uint8_t> code;
    std::span<const std::uint32_t> stream;    // numbers from 0, which is the legacy stream
    std::span<const std::uint16_t> device;    // of the stream
    std::span<const std::uint32_t> object;    // a block, an event, a graph, or a kind
    std::span<const std::uint32_t> accesses;  // how many of the accesses are the operation's
};

struct RecordedAccesses {
    std::span<const std::uint32_t> block;
    std::span<const std::uint8_t> mode;
    std::span<const std::uint64_t> start;
    std::span<const std::uint64_t> stop;
    std::span<const std::uint8_t> is_exact;  // whether the extent is known
};

struct RecordedBlocks {
    std::span<const std::uint64_t> address;
    std::span<const std::uint64_t> bytes;
    std::span<const std::uint8_t> is_pinned;
    std::span<const std::uint8_t> is_host_written;  // whether the host writes to all of it at once
    std::span<const std::uint8_t> is_private;       // whether its pool is reserved for graphs
};

struct RecordedHazards {
    std::vector<std::uint8_t> kind, tier;
    std::vector<std::uint32_t> first, second;      // rows of the operations
    std::vector<std::int64_t> block, other_block;  // -1: none
    std::vector<std::uint64_t> bytes;
};

// The hazards of a recording, in the order of their second operations. A block that overlaps live
// ones ends them; accesses to blocks that are not alive are ignored. An access of unknown mode is
// not taken as a write: most of them only read. A graph's input that was freed counts as reused
// also if its later owner was freed as well, since the graph reads what that one left. That a
// graph's temporary became another array of the same graph is no reuse if the graph writes that one
// after it.
//
// Throws std::invalid_argument if the columns refer to rows that do not exist.
[[nodiscard]] RecordedHazards hazards_of(const RecordedOperations& operations,
                                         const RecordedAccesses& accesses,
                                         const RecordedBlocks& blocks);

}  // namespace gpuviz::hazards
