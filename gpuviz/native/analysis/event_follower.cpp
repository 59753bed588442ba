#include "analysis/event_follower.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpuviz::analysis {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

void EventFollower::add(const EventRows& events) {
    const bool follows_blocks = !followed_ || !followed_->empty();
    std::int16_t number = 0;
    Device* current = nullptr;
    for (std::size_t row = 0; row < events.time.size(); ++row) {
        // Most events follow one of the same device.
        if (row == 0 || events.device[row] != number) {
            number = events.device[row];
            current = &devices_[number];
        }
        Device& device = *current;
        const auto action = static_cast<Action>(events.action[row]);
        const bool is_of_block = action == Action::alloc || action == Action::free_requested ||
                                 action == Action::free_completed;
        if (is_of_block && follows_blocks) {
            follow_block(action, events.address[row], events.time[row], {number, device.events});
        }
        if (!is_of_block || device.released != 0) {
            follow_segments(number, device, action, events.size[row], events.requested_size[row]);
        }
        ++device.events;
    }
}

void EventFollower::follow_block(Action action, std::uint64_t address, std::int64_t time,
                                 Allocation event) {
    if (followed_ && !followed_->contains(address)) return;
    auto& lives = lives_[address];
    // An allocation at an address that is in use ends the block there.
    if (!lives.empty() && lives.back().end == never) lives.back().end = time;
    if (action == Action::alloc) lives.push_back({time, never, event});
}

void EventFollower::follow_segments(std::int16_t number, Device& device, Action action,
                                    std::int64_t size, std::int64_t requested) {
    if (action == Action::segment_free || action == Action::segment_unmap) {
        if (device.released == 0) device.first_released = device.events;
        device.released += size;
        return;
    }
    // `empty_cache` released the last of them.
    if (action == Action::empty_cache) device.released -= size;
    mark_released(number, device);
    const auto mark = [&](MarkKind kind, std::int64_t bytes) {
        marks_.push_back({number, device.events, kind, bytes});
    };
    if (action == Action::empty_cache) mark(MarkKind::empty_cache, size);
    if (action == Action::oom) mark(MarkKind::out_of_memory, requested != 0 ? requested : size);
    if (action == Action::snapshot) mark(MarkKind::snapshot, 0);
}

void EventFollower::mark_released(std::int16_t number, Device& device) {
    if (device.released > 0) {
        marks_.push_back(
            {number, device.first_released, MarkKind::memory_returned, device.released});
    }
    device.released = 0;
}

Allocation EventFollower::block(std::uint64_t address, std::int64_t time) const noexcept {
    const auto found = lives_.find(address);
    if (found == lives_.end()) return {};
    const auto& lives = found->second;
    const auto after = std::ranges::upper_bound(lives, time, {}, &Life::begin);
    if (after == lives.begin() || std::prev(after)->end < time) return {};
    return std::prev(after)->allocation;
}

std::vector<Mark> EventFollower::take_marks(bool is_whole) {
    if (is_whole) {
        for (auto& [number, device] : devices_) mark_released(number, device);
    }
    return std::exchange(marks_, {});
}

}  // namespace gpuviz::analysis
