#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/device.hpp"
#include "replay/recorded_events.hpp"

namespace gpuviz::replay {

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

}  // namespace gpuviz::replay
