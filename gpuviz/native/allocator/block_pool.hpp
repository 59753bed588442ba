#pragma once

#include <cstdint>
#include <set>

#include "allocator/block.hpp"
#include "allocator/free_set.hpp"

namespace gpuviz::allocator {

struct PrivatePool;

struct ByStreamAndAddress {
    bool operator()(const Block* left, const Block* right) const noexcept {
        return left->stream != right->stream ? left->stream < right->stream
                                             : left->address < right->address;
    }
};

// The free blocks for small or for large requests.
class BlockPool {
  public:
    explicit BlockPool(bool small, PrivatePool* owner_pool = nullptr)
        : is_small(small), owner(owner_pool) {}

    void insert(Block* block) {
        block->search_count_base = search_count;
        free_blocks.insert(block);
    }

    [[nodiscard]] std::uint64_t age(const Block* block) const noexcept {
        return search_count - block->search_count_base;
    }

    const bool is_small;
    PrivatePool* const owner;  // null: a default pool
    FreeSet free_blocks;
    std::set<Block*, ByStreamAndAddress> unmapped;  // of expandable segments
    std::uint64_t search_count = 0;                 // counted while garbage collection is on
};

// A MemPool's own pair of pools.
struct PrivatePool {
    explicit PrivatePool(std::uint64_t number_) : number(number_) {}

    std::uint64_t number;  // the n of its id (0, n)
    int use_count = 1;     // 0: the next release returns its memory
    std::uint64_t reserved_bytes = 0;
    bool no_split = false;    // blocks are never split
    bool use_on_oom = false;  // other requests may use its free blocks before they fail
    BlockPool small{true, this};
    BlockPool large{false, this};
};

}  // namespace gpuviz::allocator
