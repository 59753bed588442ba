#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "record/activity_log.hpp"
#include "record/address_filter.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::record {

// Finds the blocks to which launches received pointers.
//
// A launch adds its addresses immediately. The collector decides which of them lie in live blocks,
// once it has received all allocator events from before the launch.
class BlockTouches {
  public:
    struct Touch {
        std::int64_t time_ns;
        std::uint64_t address;
        std::uint32_t correlation;
        AccessMode mode;
        std::uint64_t bytes = 0;    // from the address on, all of which it accesses; 0: unknown
        std::uint64_t content = 0;  // of a copy on the host, or of the launch's other arguments
        std::uint32_t element = 0;  // the bytes of an element of an array of CuPy; 0: unknown
        std::uint32_t stride = 0;   // see cupti::ArraySpan
    };

    // Called by launching threads: keeps addresses that may lie in a block.
    void add(std::span<const Touch> touches) noexcept;
    [[nodiscard]] bool may_be_block(std::uint64_t address) const noexcept {
        return filter_.may_contain(address);
    }
    // Called by threads that allocate memory that no ring tells of: a block exists from a time on,
    // or no longer, if its size is 0.
    void changed(std::int64_t time_ns, std::uint64_t address, std::uint64_t size) noexcept;
    // Called by allocating threads, before the address is returned to the program.
    void saw(const MemoryEvent& event) noexcept {
        const bool is_memory = event.action == Action::alloc ||
                               event.action == Action::segment_alloc ||
                               event.action == Action::segment_map;
        if (is_memory && !is_sampled(event)) {
            filter_.add(event.address, event.size);
        }
    }

    // Called by the collector, in this order: begin(), the events of each ring, resolve().
    void begin();
    void collect(std::span<const MemoryEvent> events);
    void resolve(ActivityLog& log);

  private:
    // Blocks of JAX are known by samples, and have addresses that are made up. What a launch
    // receives is never one, even if it looks like it.
    [[nodiscard]] static bool is_sampled(const MemoryEvent& event) noexcept {
        return event.framework == Framework::jax;
    }

    struct Change {
        std::int64_t time_ns;
        std::uint64_t address;
        std::uint64_t size;  // 0: the block is gone
    };

    void apply(const Change& change);
    void record(const Touch& touch, ActivityLog& log);

    AddressFilter filter_;
    std::mutex mutex_;  // guards added_, added_changes_ and dropped_
    std::vector<Touch> added_;
    std::vector<Change> added_changes_;
    std::uint64_t dropped_ = 0;
    std::vector<Touch> touches_;
    std::vector<Change> changes_;
    std::map<std::uint64_t, std::uint64_t> blocks_;  // live blocks: size by address
};

}  // namespace gpuviz::record
