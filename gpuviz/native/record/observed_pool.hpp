#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "record/memory_event.hpp"

namespace gpuviz::record {

// What is seen of a foreign allocator on one device, turned into memory events.
//
// Blocks are what was handed out. Segments are inferred for pools that tell how much they hold and
// that take from the device just what a request needs, as cupy.cuda.MemoryPool does: a block in no
// known segment is a new segment, and when the pool holds less than the known segments, those
// without a live block are gone. One thread at a time.
class ObservedPool {
  public:
    static constexpr std::uint64_t kUnknownTotal = ~std::uint64_t{0};

    struct Allocation {
        std::uint64_t address;
        std::uint64_t size;
        std::uint64_t requested_size;
        std::uint64_t stream;
    };

    // `total` is what the pool holds now, before anything is observed, or kUnknownTotal.
    ObservedPool(int device, std::uint64_t total);

    void set_sink(MemoryEventSink* sink) noexcept { sink_ = sink; }

    // Records segments that the pool gave back since the last call; `total` is what it holds now.
    void update(std::uint64_t total, const CallSite& site);
    // `total` is what the pool holds after the allocation.
    void allocated(const Allocation& allocation, std::uint64_t total, const CallSite& site);
    void freed(std::uint64_t address, const CallSite& site);
    void out_of_memory(std::uint64_t requested_size, std::uint64_t stream, const CallSite& site);

    // Events for what is known to live now, for a recording that starts in the middle.
    void describe_state() const;

  private:
    struct Segment {
        std::uint64_t size;
        std::uint64_t stream;
        std::uint64_t live_blocks;
    };
    using Segments = std::map<std::uint64_t, Segment>;

    void push(Action action, const Allocation& allocation, const CallSite& site) const noexcept;
    [[nodiscard]] Segments::iterator segment_of(std::uint64_t address);
    // Whether a block that was just handed out lies in no segment known or unseen.
    [[nodiscard]] bool begins_segment(const Allocation& allocation, std::uint64_t total);
    void add_segment(const Allocation& allocation, std::uint64_t total, const CallSite& site);
    void drop_segments(std::uint64_t total, const CallSite& site);

    std::uint16_t device_;
    MemoryEventSink* sink_ = nullptr;
    std::uint64_t unseen_;  // bytes of segments taken before anything was observed
    std::uint64_t seen_ = 0;
    Segments segments_;
    std::unordered_map<std::uint64_t, Allocation> blocks_;
};

}  // namespace gpuviz::record
