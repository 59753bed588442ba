#include "record/event_ring.hpp"

namespace gpuviz {

void EventRing::push(const MemoryEvent& event) noexcept {
    if (!ring_.push(event)) {
        for_each_row(event, [&](const MemoryEvent& row) {
            dropped_[std::size_t(row.action)].fetch_add(1, std::memory_order_relaxed);
        });
    }
}

ActionCounts EventRing::dropped() const noexcept {
    ActionCounts counts;
    for (std::size_t action = 0; action < action_count; ++action) {
        counts[action] = dropped_[action].load(std::memory_order_relaxed);
    }
    return counts;
}

}  // namespace gpuviz
