#include "replay/stream_handles.hpp"

#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>

namespace gpuviz::replay {

StreamHandles::StreamHandles(std::span<const std::uint32_t> ids,
                             std::span<const std::uint64_t> handles) {
    for (std::size_t row = 0; row < ids.size(); ++row) {
        handles_.insert_or_assign(ids[row], handles[row]);
    }
}

device::StreamHandle StreamHandles::handle(std::uint32_t id) const {
    const auto known = handles_.find(id);
    if (known == handles_.end()) {
        throw std::invalid_argument("Stream " + std::to_string(id) + " has events, but no handle.");
    }
    return known->second;
}

std::vector<std::uint32_t> StreamHandles::used_ids(const RecordedEvents& events) {
    std::set<std::uint32_t> ids;
    std::uint32_t last = 0;
    for (std::size_t row = 0; row < events.count(); ++row) {
        if (events.device[row] == events.device_id && (ids.empty() || events.stream[row] != last)) {
            last = events.stream[row];
            ids.insert(last);
        }
    }
    return {ids.begin(), ids.end()};
}

}  // namespace gpuviz::replay
