#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "record/block_touches.hpp"
#include "record/memory_event.hpp"
#include "record/ring.hpp"

namespace gpuviz::record {

using ActionCounts = std::array<std::uint64_t, action_count>;

// The allocator events of one device on their way to the collector.
//
// A program that allocates faster than a busy machine lets the collector run fills the ring. Then
// push() gives it up to 200 ms of the processor, once, and counts a drop if there
// is still no room.
class EventRing final : public MemoryEventSink {
  public:
    // `touches` may be null.
    explicit EventRing(std::size_t capacity, BlockTouches* touches = nullptr)
        : ring_(capacity), touches_(touches) {}

    void push(const MemoryEvent& event) noexcept override;

    // See Ring::drain.
    template <typename Consume>
    std::size_t drain(Consume&& consume) {
        return ring_.drain(static_cast<Consume&&>(consume));
    }

    // Events lost because the ring was full; any thread.
    [[nodiscard]] ActionCounts dropped() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept {
        return ring_.capacity() * sizeof(MemoryEvent);
    }

  private:
    static constexpr std::int64_t patience_ns = 200'000'000;

    [[nodiscard]] bool push_within_patience(const MemoryEvent& event) noexcept;

    Ring<MemoryEvent> ring_;
    BlockTouches* touches_;
    bool collected_ = true;  // there was room at the last push
    std::array<std::atomic<std::uint64_t>, action_count> dropped_{};
};

}  // namespace gpuviz::record
