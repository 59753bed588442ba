#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "record/memory_event.hpp"
#include "state/free_sizes.hpp"
#include "state/memory_totals.hpp"

namespace gpuviz::state {

enum class BlockState : std::uint8_t { inactive, active_allocated, active_pending_free };

// A contiguous range from the driver: one cuMemAlloc, or one run of mapped pages.
struct Segment {
    std::uint64_t size;
    std::int64_t time_ns;
    std::uint32_t stream;
    std::uint32_t pool;
    std::uint32_t stack;
    bool is_expandable;
};

struct Block {
    std::uint64_t size;
    std::uint64_t requested_size;
    std::int64_t time_ns;
    const Segment* segment;  // null: outside every known segment, or in an expandable one
    std::uint32_t stream;
    std::uint32_t pool;
    std::uint32_t stack;
    std::uint32_t thread;
    record::Framework framework;
    BlockState state;
    bool is_expandable;

    [[nodiscard]] bool has_segment() const noexcept { return segment != nullptr || is_expandable; }
    // As in torch, free bytes of expandable segments never count as split, because their pages can
    // be unmapped.
    [[nodiscard]] bool is_split() const noexcept {
        return segment != nullptr && size != segment->size;
    }
};

// The parts of a device's reserved memory, in bytes.
struct MemoryParts {
    std::int64_t reserved = 0;
    std::int64_t free = 0;
    std::int64_t inactive_split = 0;
    std::int64_t largest_free = 0;
    // Active bytes outside known segments; not included in the other numbers.
    std::int64_t outside = 0;
};

// One event of one device, with table ids instead of handles.
struct DeviceEvent {
    std::int64_t time_ns;
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t requested_size;
    std::uint32_t stream;
    std::uint32_t pool;
    std::uint32_t stack;
    std::uint32_t thread;
    record::Framework framework;
    record::Action action;

    [[nodiscard]] std::uint64_t end() const noexcept { return address + size; }
};

// The memory of one device, reconstructed from its events.
//
// Events that contradict the state are counted as anomalies, and the newer event wins: conflicting
// blocks must have been freed unnoticed. Free memory is stored as inactive blocks, always merged.
class DeviceMemory {
  public:
    using Blocks = std::map<std::uint64_t, Block>;
    using Segments = std::map<std::uint64_t, Segment>;

    DeviceMemory() = default;
    DeviceMemory(const DeviceMemory& other);
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    void apply(const DeviceEvent& event);
    void forget_the_past() noexcept { totals_.forget_the_past(); }
    // Appends the allocation times of blocks whose frees are requested and completed, in ns, to
    // vectors which must outlive this. Copies do not.
    void report_frees(std::vector<std::int64_t>& requested,
                      std::vector<std::int64_t>& completed) noexcept {
        requested_ = &requested;
        completed_ = &completed;
    }

    [[nodiscard]] const MemoryTotals& totals() const noexcept { return totals_; }
    [[nodiscard]] const Blocks& blocks() const noexcept { return blocks_; }
    [[nodiscard]] const Segments& segments() const noexcept { return segments_; }
    [[nodiscard]] std::int64_t anomalies() const noexcept { return anomalies_; }
    // Of the last memory_limit; -1 without one.
    [[nodiscard]] std::int64_t memory_limit() const noexcept { return memory_limit_; }
    // Constant cost, except for the first call.
    [[nodiscard]] MemoryParts parts() const;
    // Bytes; -1 if unknown, because live blocks lie outside the known segments. Constant cost,
    // except for the first call.
    [[nodiscard]] std::int64_t largest_free(PoolKind kind) const;

  private:
    // A free block after merging with its free neighbours.
    struct Merged {
        Blocks::iterator block;
        int absorbed;
        std::uint64_t absorbed_bytes;
    };

    void allocate(DeviceEvent event);
    void request_free(Blocks::iterator block);
    void complete_free(Blocks::iterator block);
    void add_segment(const DeviceEvent& event);
    void free_segment(const DeviceEvent& event);
    void map_pages(const DeviceEvent& event);
    void unmap_pages(const DeviceEvent& event);

    [[nodiscard]] Blocks::iterator find_live(std::uint64_t address);
    [[nodiscard]] Blocks::iterator find_covering(std::uint64_t address, std::uint64_t end);
    void take(Blocks::iterator home, const DeviceEvent& event);
    void add_outside(const DeviceEvent& event);
    void evict_live(std::uint64_t address, std::uint64_t end);
    void evict_segments(std::uint64_t address, std::uint64_t end);
    void release_segment(Segments::iterator segment);
    void cut_run(Segments::iterator run, std::uint64_t address, std::uint64_t end);
    void add_inactive(std::uint64_t address, std::uint64_t size, const Segment& segment);
    Merged merge(Blocks::iterator block);

    void count_free_block(const Block& block) {
        if (counts_free_sizes_) free_sizes_[block.pool & 1].add(block.size);
    }
    void uncount_free_block(const Block& block) {
        if (counts_free_sizes_) free_sizes_[block.pool & 1].remove(block.size);
    }
    // Bytes, in the pools of a kind.
    [[nodiscard]] std::uint64_t largest_of(PoolKind kind) const;

    Blocks blocks_;
    Segments segments_;
    Blocks::iterator last_found_ = blocks_.end();
    // Of small and of large pools; maintained from the first query on.
    mutable std::array<FreeSizes, 2> free_sizes_;
    mutable bool counts_free_sizes_ = false;
    MemoryTotals totals_;
    std::int64_t anomalies_ = 0;
    std::int64_t memory_limit_ = -1;
    std::int64_t live_outside_ = 0;
    std::int64_t outside_bytes_ = 0;
    bool seen_outside_ = false;
    bool seen_segment_ = false;
    std::vector<std::int64_t>* requested_ = nullptr;
    std::vector<std::int64_t>* completed_ = nullptr;
};

}  // namespace gpuviz::state
