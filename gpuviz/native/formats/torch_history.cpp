#include "formats/torch_history.hpp"

#include <algorithm>
#include <set>

#include "formats/torch_device.hpp"

namespace gpuviz::formats {

namespace {

// Below this number 2 * n + 1 fits the column; no program creates as many pools.
constexpr std::int64_t highest_owner = std::int64_t{1} << 30;

// Pools of MemPool keep torch's number; those of graph captures get the next free numbers.
std::vector<std::uint32_t> owners_of(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& pools) {
    std::set<std::uint32_t> used{0};
    const auto is_plain = [](const std::pair<std::int64_t, std::int64_t>& id) {
        return id.first == 0 && id.second < highest_owner;
    };
    for (const auto& id : pools) {
        if (is_plain(id)) used.insert(static_cast<std::uint32_t>(id.second));
    }
    std::vector<std::uint32_t> owners;
    std::uint32_t next = 1;
    for (const auto& id : pools) {
        if (is_plain(id)) {
            owners.push_back(static_cast<std::uint32_t>(id.second));
            continue;
        }
        while (used.contains(next)) ++next;
        used.insert(next);
        owners.push_back(next);
    }
    return owners;
}

}  // namespace

TorchHistory torch_history(const TorchSnapshot& snapshot) {
    const TorchEvents& events = snapshot.events;
    TorchHistory history;
    history.owners = owners_of(snapshot.pools);
    history.pool.assign(events.count(), 0);
    history.size.assign(events.count(), 0);
    for (std::size_t row = 0; row < events.count(); ++row) {
        if (events.action[row] < record::Action::segment_alloc) continue;
        history.size[row] = std::max(events.size[row], events.block_size[row]);
    }
    std::set<std::int16_t> devices(events.device.begin(), events.device.end());
    devices.insert(snapshot.segments.device.begin(), snapshot.segments.device.end());
    for (const std::int16_t device : devices) {
        const auto range = std::equal_range(events.device.begin(), events.device.end(), device);
        const auto first = static_cast<std::size_t>(range.first - events.device.begin());
        const auto last = static_cast<std::size_t>(range.second - events.device.begin());
        TorchDevice memory(snapshot, snapshot.settings.rounding, history, device);
        memory.undo(first, last);
        memory.describe_before();
        memory.redo(first, last);
        memory.describe_after();
    }
    return history;
}

}  // namespace gpuviz::formats
