#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hazards/history.hpp"
#include "hazards/order.hpp"

namespace gpuviz::hazards {

enum class Memory : std::uint8_t { device, pinned };

using ThreadId = std::uint32_t;

// Who frees and reuses a block.
enum class Allocator : std::uint8_t { cuda, caching, private_pool, stream_ordered };

struct Allocation {
    OperationId operation = 0;  // 0: cannot be part of a hazard
    Allocator allocator = Allocator::cuda;
    Memory memory = Memory::device;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Slot stream = Order::legacy;  // of an allocator that has streams
    ThreadId thread = 0;
};

struct Block {
    std::uint32_t generation = 0;
    bool is_live = false;
    bool is_released = false;
    bool is_graph_memory = false;  // allocated by a node of a graph
    bool freed_async = false;
    bool is_in_graph = false;
    Allocation of;
    OperationId freed_by = 0;
    Moment allocated;  // if stream-ordered
    Extent* extent = nullptr;
    std::vector<Slot> recorded;
};

// The blocks of memory by id. No two blocks have the same id, though they may share a slot, one
// after the other.
//
// Ids of blocks that do not exist throw std::invalid_argument. Not thread-safe. Adding a block
// invalidates references to others.
class Blocks {
  public:
    // Null if there is no such block, or no longer.
    [[nodiscard]] Block* find(BlockId id) noexcept {
        const auto slot = static_cast<std::uint32_t>(id) - 1;
        if (slot >= blocks_.size() || blocks_[slot].generation != id >> 32) return nullptr;
        return &blocks_[slot];
    }
    [[nodiscard]] bool is_live(BlockId id) noexcept {
        const Block* block = find(id);
        return block && block->is_live;
    }
    [[nodiscard]] Block& live(BlockId id);

    // The id that add() gives to a block.
    [[nodiscard]] BlockId next();
    // Adds a live block in memory that belongs to next().
    Block& add(const Allocation& of, Extent& extent);
    // Forgets a block that was freed, unless a graph accesses it.
    void release(BlockId id);

    // The strongest accesses, with addresses for bytes. Valid until the next call.
    [[nodiscard]] const std::vector<Access>& placed(std::span<const Access> accesses);

  private:
    std::vector<Block> blocks_;
    std::vector<std::uint32_t> unused_;
    std::vector<Access> placed_;
};

}  // namespace gpuviz::hazards
