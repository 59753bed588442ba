#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::allocator {

class BlockPool;
class ExpandableSegment;

// Streams other than its own that use a block, in the order of record_stream.
struct StreamUses {
    std::vector<device::StreamHandle> streams;
    std::vector<device::StreamHandle>
        recorded_in_pool;  // of these, those recorded while a pool was active
};

// A piece of a segment. The pieces of one segment form a list by address; a block never changes
// its stream or its pool.
struct Block {
    device::Address address;
    std::uint64_t size;
    std::uint64_t requested_size;  // of its last allocation; stale while free
    device::StreamHandle stream;
    BlockPool* pool;
    ExpandableSegment* expandable_segment;  // null: in an ordinary segment
    Block* previous;
    Block* next;
    std::unique_ptr<StreamUses> stream_uses;
    std::uint64_t search_count_base;  // the pool's count of searches when the block became free
    std::uint32_t stack;              // of the allocation
    std::uint32_t segment_stack;      // of the segment's allocation; meaningful in its first block
    std::uint32_t freed_stack;        // of the last free, if freed blocks are filled
    std::uint32_t event_count;
    std::uint32_t holds;    // graphs that use it
    bool freed_while_held;  // its free waits for them
    bool allocated;
    bool mapped;
    bool exists;                  // false: in the arena's list of unused blocks
    bool pending;                 // free was requested, but a stream may still use it
    record::Framework framework;  // of its last allocation

    [[nodiscard]] bool is_split() const noexcept { return previous != nullptr || next != nullptr; }
    [[nodiscard]] bool is_free() const noexcept { return !allocated && !pending; }
};

// Owns every block of an allocator; blocks keep their address while they exist.
class BlockArena {
  public:
    [[nodiscard]] Block* create(device::Address address, std::uint64_t size,
                                device::StreamHandle stream, BlockPool* pool) {
        Block* block = nullptr;
        if (unused_.empty()) {
            block = &blocks_.emplace_back();
        } else {
            block = unused_.back();
            unused_.pop_back();
        }
        *block = Block{};
        block->address = address;
        block->size = size;
        block->stream = stream;
        block->pool = pool;
        block->mapped = true;
        block->exists = true;
        return block;
    }

    void destroy(Block* block) {
        block->exists = false;
        unused_.push_back(block);
    }

    template <typename Visit>
    void for_each(Visit visit) {
        for (Block& block : blocks_) {
            if (block.exists) {
                visit(block);
            }
        }
    }

  private:
    std::deque<Block> blocks_;
    std::vector<Block*> unused_;
};

}  // namespace gpuviz::allocator
