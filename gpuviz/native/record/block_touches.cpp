#include "record/block_touches.hpp"

#include <algorithm>
#include <exception>

namespace gpuviz::record {

void BlockTouches::add(std::span<const Touch> touches) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        added_.insert(added_.end(), touches.begin(), touches.end());
    } catch (const std::exception&) {
        dropped_ += touches.size();
    }
}

void BlockTouches::changed(std::int64_t time_ns, std::uint64_t address,
                           std::uint64_t size) noexcept {
    if (size != 0) {
        filter_.add(address, size);
    }
    const std::lock_guard lock(mutex_);
    try {
        added_changes_.push_back({time_ns, address, size});
    } catch (const std::exception&) {
        ++dropped_;
    }
}

void BlockTouches::begin() {
    changes_.clear();
    touches_.clear();
    const std::lock_guard lock(mutex_);
    touches_.swap(added_);
    changes_.swap(added_changes_);
}

void BlockTouches::collect(std::span<const MemoryEvent> events) {
    for (const MemoryEvent& event : events) {
        if (is_sampled(event)) {
            continue;
        }
        if (event.action == Action::alloc) {
            changes_.push_back({event.time_ns, event.address, event.size});
        } else if (event.completed || event.action == Action::free_completed) {
            changes_.push_back({event.time_ns, event.address, 0});
        }
    }
}

void BlockTouches::resolve(ActivityLog& log) {
    const auto by_time = [](const auto& left, const auto& right) {
        return left.time_ns < right.time_ns;
    };
    std::stable_sort(changes_.begin(), changes_.end(), by_time);
    std::stable_sort(touches_.begin(), touches_.end(), by_time);
    auto change = changes_.begin();
    for (const Touch& touch : touches_) {
        for (; change != changes_.end() && change->time_ns <= touch.time_ns; ++change) {
            apply(*change);
        }
        record(touch, log);
    }
    std::for_each(change, changes_.end(), [&](const Change& rest) { apply(rest); });
    if (dropped_ != 0) {
        const std::lock_guard lock(mutex_);
        log.count_lost(std::exchange(dropped_, 0));
    }
}

void BlockTouches::apply(const Change& change) {
    if (change.size == 0) {
        blocks_.erase(change.address);
    } else {
        blocks_[change.address] = change.size;
    }
}

void BlockTouches::record(const Touch& touch, ActivityLog& log) {
    auto after = blocks_.upper_bound(touch.address);
    if (after == blocks_.begin()) {
        return;
    }
    const auto& [address, size] = *std::prev(after);
    const std::uint64_t offset = touch.address - address;
    if (offset < size) {
        const std::uint64_t bytes = touch.bytes <= size - offset ? touch.bytes : 0;
        log.launch_blocks.append({touch.correlation, address, touch.address, touch.mode, bytes,
                                  touch.content, touch.element, touch.stride});
    }
}

}  // namespace gpuviz::record
