#include "state/free_levels.hpp"

namespace gpuviz::state {

std::vector<FreeLevel> FreeLevels::add(const MemoryColumns& events) {
    std::vector<FreeLevel> changes;
    for (std::size_t row = 0; row < events.count(); ++row) {
        Device& device = devices_[events.device[row]];
        const std::int32_t event = device.events++;
        const DeviceMemory* memory = state_.apply_row(events, row);
        if (memory == nullptr || (!device.last && memory->segments().empty())) continue;
        const MemoryParts parts = memory->parts();
        const bool is_same = device.last && device.last->largest == parts.largest_free &&
                             device.last->outside == parts.outside;
        if (is_same) continue;
        device.last = FreeLevel{events.device[row], event, parts.largest_free, parts.outside};
        changes.push_back(*device.last);
    }
    for (auto& [number, device] : devices_) {
        if (!device.last || device.last->event == device.events - 1) continue;
        device.last->event = device.events - 1;
        changes.push_back(*device.last);
    }
    return changes;
}

}  // namespace gpuviz::state
