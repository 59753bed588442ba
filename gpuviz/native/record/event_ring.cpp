#include "record/event_ring.hpp"

#include <sched.h>

#include <ctime>

#include "record/clock.hpp"

namespace gpuviz::record {

void EventRing::push(const MemoryEvent& event) noexcept {
    const SampledCost::Call call(cost_);
    if (!lock()) {
        drop(event);
        return;
    }
    if (event.time_ns >= last_ns_) {
        push_locked(event);
    } else {
        MemoryEvent later = event;
        later.time_ns = last_ns_;
        push_locked(later);
    }
    is_locked_.store(false, std::memory_order_release);
}

bool EventRing::lock() noexcept {
    if (!is_locked_.exchange(true, std::memory_order_acquire)) {
        return true;
    }
    const std::int64_t deadline_ns = now_ns() + patience_ns;
    while (is_locked_.exchange(true, std::memory_order_acquire)) {
        if (now_ns() > deadline_ns) {
            return false;
        }
        sched_yield();
    }
    return true;
}

void EventRing::push_locked(const MemoryEvent& event) noexcept {
    last_ns_ = event.time_ns;
    if (touches_ != nullptr) {
        touches_->saw(event);
    }
    if (ring_.push(event)) {
        collected_ = true;
    } else if (!collected_ || !push_within_patience(event)) {
        collected_ = false;
        drop(event);
    }
}

bool EventRing::push_within_patience(const MemoryEvent& event) noexcept {
    const std::int64_t deadline_ns = now_ns() + patience_ns;
    do {
        const timespec nap{0, 50'000};
        nanosleep(&nap, nullptr);
        if (ring_.push(event)) {
            return true;
        }
    } while (now_ns() < deadline_ns);
    return false;
}

void EventRing::drop(const MemoryEvent& event) noexcept {
    for_each_row(event, [&](const MemoryEvent& row) {
        dropped_[std::size_t(row.action)].fetch_add(1, std::memory_order_relaxed);
    });
}

ActionCounts EventRing::dropped() const noexcept {
    ActionCounts counts;
    for (std::size_t action = 0; action < action_count; ++action) {
        counts[action] = dropped_[action].load(std::memory_order_relaxed);
    }
    return counts;
}

}  // namespace gpuviz::record
