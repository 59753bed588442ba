#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/settings.hpp"
#include "replay/recorded_events.hpp"
#include "replay/replay_program.hpp"
#include "replay/stream_handles.hpp"

namespace gpuviz::replay {

// What is known about a recording besides its events.
struct RecordedProgram {
    allocator::Settings settings;
    std::size_t initial_events = 0;  // rows that describe what existed before
    std::uint64_t capacity = 0;      // bytes of the device; 0: unknown
    // The events are torch's, or of another allocator that does not record calls of empty_cache.
    bool lacks_calls = false;
    bool omits_calls = false;  // the replay is without those calls
    // The replay has the recording's settings: segments may begin where they were.
    bool keeps_settings = false;
    bool keeps_limits = true;  // the recorded memory limits apply
    allocator::PoolFilter pool_filter = allocator::PoolFilter::everything;
};

struct RecordedOperations {
    ReplayProgram program;
    std::vector<std::uint32_t> pools;  // the recording's number of each pool of the program, from 0
    std::int64_t inferred_calls = 0;   // of empty_cache
    std::optional<std::uint64_t> inferred_limit;  // of reserved bytes, from failed requests
};

// The operations that a recording's events repeat. A failed request is followed by a free, in case
// it succeeds in the replay.
[[nodiscard]] RecordedOperations recorded_operations(const RecordedEvents& events,
                                                     const StreamHandles& streams,
                                                     const RecordedProgram& recorded);

}  // namespace gpuviz::replay
