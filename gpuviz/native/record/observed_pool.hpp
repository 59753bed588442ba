#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "record/memory_event.hpp"

namespace gpuviz::record {

// Converts observations of another allocator on one device to memory events.
//
// Allocations become blocks. Segments are inferred for pools that report their size and allocate
// from the device exactly what a request needs, like cupy.cuda.MemoryPool: a block in no known
// segment is a new segment, and if the pool becomes smaller than the known segments, those without
// live blocks have been freed. Not thread-safe.
class ObservedPool {
  public:
    static constexpr std::uint64_t kUnknownTotal = ~std::uint64_t{0};

    struct Allocation {
        std::uint64_t address;
        std::uint64_t size;
        std::uint64_t requested_size;
        std::uint64_t stream;
    };

    // `total` is the size of the pool before the first observation, or kUnknownTotal; `pool` is
    // MemoryEvent::pool of its events.
    ObservedPool(int device, std::uint64_t total, std::uint32_t pool = 0);

    void set_sink(MemoryEventSink* sink) noexcept { sink_ = sink; }

    // Records segments that the pool released since the last call; `total` is its current size.
    void update(std::uint64_t total, const CallSite& site);
    // `total` is the size of the pool after the allocation.
    void allocated(const Allocation& allocation, std::uint64_t total, const CallSite& site);
    void freed(std::uint64_t address, const CallSite& site);
    void out_of_memory(std::uint64_t requested_size, std::uint64_t stream, const CallSite& site);

    // Pushes events that recreate the known live blocks, at the start of a recording.
    void describe_state(const CallSite& site = {}) const;
    [[nodiscard]] bool has_blocks() const noexcept { return !blocks_.empty(); }

  private:
    struct Segment {
        std::uint64_t size;
        std::uint64_t stream;
        std::uint64_t live_blocks;
    };
    using Segments = std::map<std::uint64_t, Segment>;

    void push(Action action, const Allocation& allocation, const CallSite& site,
              bool completed = false) const noexcept;
    [[nodiscard]] Segments::iterator segment_of(std::uint64_t address);
    // Whether a new block lies outside all known and unseen segments.
    [[nodiscard]] bool begins_segment(const Allocation& allocation, std::uint64_t total);
    void add_segment(const Allocation& allocation, std::uint64_t total, const CallSite& site);
    void drop_segments(std::uint64_t total, const CallSite& site);

    std::uint16_t device_;
    std::uint32_t pool_;
    MemoryEventSink* sink_ = nullptr;
    std::uint64_t unseen_;  // bytes of segments from before the first observation
    std::uint64_t seen_ = 0;
    Segments segments_;
    std::unordered_map<std::uint64_t, Allocation> blocks_;
};

}  // namespace gpuviz::record
