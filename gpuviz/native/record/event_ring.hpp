#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "record/block_touches.hpp"
#include "record/memory_event.hpp"
#include "record/ring.hpp"
#include "record/sampled_cost.hpp"

namespace gpuviz::record {

using ActionCounts = std::array<std::uint64_t, action_count>;

// The queue of one device's allocator events to the collector.
//
// Several allocators may serve a device, each with a lock of its own, so a push takes a short lock,
// and events get times that never decrease. A thread that cannot have that lock for 200 ms, as in
// the child of a fork, drops its event.
//
// If the program allocates faster than the collector can run on a busy machine, the ring becomes
// full. push() then yields the processor for up to 200 ms, once, and counts a dropped event if the
// ring is still full.
class EventRing final : public MemoryEventSink {
  public:
    // `touches` may be null.
    EventRing(std::size_t capacity, SampledCost& cost, BlockTouches* touches = nullptr)
        : ring_(capacity), cost_(cost), touches_(touches) {}

    void push(const MemoryEvent& event) noexcept override;

    // See Ring::drain.
    template <typename Consume>
    std::size_t drain(Consume&& consume) {
        return ring_.drain(static_cast<Consume&&>(consume));
    }

    // Events dropped because the ring was full; thread-safe.
    [[nodiscard]] ActionCounts dropped() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept {
        return ring_.capacity() * sizeof(MemoryEvent);
    }

  private:
    static constexpr std::int64_t patience_ns = 200'000'000;

    [[nodiscard]] bool lock() noexcept;
    void push_locked(const MemoryEvent& event) noexcept;
    [[nodiscard]] bool push_within_patience(const MemoryEvent& event) noexcept;
    void drop(const MemoryEvent& event) noexcept;

    Ring<MemoryEvent> ring_;
    SampledCost& cost_;
    BlockTouches* touches_;
    std::atomic<bool> is_locked_{false};
    std::int64_t last_ns_ = 0;  // of the last event
    bool collected_ = true;     // the last push succeeded
    std::array<std::atomic<std::uint64_t>, action_count> dropped_{};
};

}  // namespace gpuviz::record
