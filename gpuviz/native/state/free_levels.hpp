#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "state/memory_state.hpp"

namespace gpuviz::state {

// A row of the table `free_levels`, in bytes.
struct FreeLevel {
    std::int16_t device;
    std::int32_t event;  // among those of the device
    std::int64_t largest;
    std::int64_t outside;
};

// Follows how free memory changes as events are added. Not thread-safe.
class FreeLevels {
  public:
    // Returns a row for each change of a device, from its first segment on, and one for its last
    // event.
    [[nodiscard]] std::vector<FreeLevel> add(const MemoryColumns& events);

  private:
    struct Device {
        std::int32_t events = 0;
        std::optional<FreeLevel> last;
    };

    MemoryState state_;
    std::map<std::int16_t, Device> devices_;
};

}  // namespace gpuviz::state
