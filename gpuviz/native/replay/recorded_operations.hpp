#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "allocator/settings.hpp"
#include "device/device.hpp"
#include "replay/replay_program.hpp"

namespace gpuviz::replay {

// Columns of the table `memory_events`, of equal length; only rows of `device_id` count.
struct RecordedEvents {
    std::span<const std::int64_t> time;
    std::span<const std::int8_t> action;
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> requested_size;
    std::span<const std::int16_t> device;
    std::span<const std::uint32_t> stream;
    std::span<const std::uint32_t> pool;
    std::span<const std::uint32_t> stack;
    std::span<const std::uint32_t> thread;
    std::span<const std::uint32_t> range;
    std::span<const std::int8_t> framework;
    std::int16_t device_id = 0;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

// The raw handles of streams, by their ids in a recording; id 0 is the default stream.
class StreamHandles {
  public:
    StreamHandles(std::span<const std::uint32_t> ids, std::span<const std::uint64_t> handles);

    // Throws std::invalid_argument for an unknown id.
    [[nodiscard]] device::StreamHandle handle(std::uint32_t id) const;
    // The ids in the events, ascending.
    [[nodiscard]] static std::vector<std::uint32_t> used_ids(const RecordedEvents& events);

  private:
    std::unordered_map<std::uint32_t, std::uint64_t> handles_{{0, 0}};
};

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
