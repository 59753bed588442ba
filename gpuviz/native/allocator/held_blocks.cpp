// Blocks that a captured graph uses, which are freed when the graph is gone.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

using device::Address;
using record::CallSite;

namespace {

bool comes_before(const Block* one, const Block* other) { return one->address < other->address; }

// `used` is sorted.
bool contains_any(const Block& block, const std::vector<Address>& used) {
    const auto next = std::lower_bound(used.begin(), used.end(), block.address);
    return next != used.end() && *next - block.address < block.size;
}

}  // namespace

std::uint64_t CachingAllocator::hold_allocated(std::uint64_t except_pool) {
    const std::lock_guard lock(mutex_);
    Hold hold{except_pool, {}};
    arena_.for_each([&](Block& block) {
        if (block.allocated && !is_in_pool(block, except_pool)) {
            block.holds += 1;
            hold.blocks.push_back(&block);
        }
    });
    std::sort(hold.blocks.begin(), hold.blocks.end(), comes_before);
    holds_.emplace(++last_hold_, std::move(hold));
    return last_hold_;
}

void CachingAllocator::keep_used(std::uint64_t number, std::vector<Address> used,
                                 const CallSite& site) {
    const std::lock_guard lock(mutex_);
    Hold& hold = hold_at(number);
    std::sort(used.begin(), used.end());
    std::vector<Block*> kept;
    arena_.for_each([&](Block& block) {
        const bool is_held =
            std::binary_search(hold.blocks.begin(), hold.blocks.end(), &block, comes_before);
        const bool is_new = !is_held && block.allocated && !is_in_pool(block, hold.except_pool);
        if ((is_held || is_new) && contains_any(block, used)) {
            block.holds += 1;
            kept.push_back(&block);
        }
    });
    std::sort(kept.begin(), kept.end(), comes_before);
    let_go(std::exchange(hold.blocks, std::move(kept)), site);
}

void CachingAllocator::release_hold(std::uint64_t number, const CallSite& site) {
    const std::lock_guard lock(mutex_);
    const std::vector<Block*> blocks = std::move(hold_at(number).blocks);
    holds_.erase(number);
    let_go(blocks, site);
}

std::uint64_t CachingAllocator::held_bytes(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const Block* block : hold_at(number).blocks) {
        bytes += block->size;
    }
    return bytes;
}

// A block that was taken out of allocated_.
void CachingAllocator::free_later(Block* block) {
    allocated_.insert(block);
    if (block->freed_while_held) {
        throw std::invalid_argument("a block that a graph uses was freed twice");
    }
    block->freed_while_held = true;
}

CachingAllocator::Hold& CachingAllocator::hold_at(std::uint64_t number) {
    const auto known = holds_.find(number);
    if (known == holds_.end()) {
        throw std::invalid_argument("There is no hold " + std::to_string(number) + ".");
    }
    return known->second;
}

void CachingAllocator::let_go(const std::vector<Block*>& blocks, const CallSite& site) {
    for (Block* block : blocks) {
        block->holds -= 1;
        if (block->holds == 0 && block->freed_while_held) {
            block->freed_while_held = false;
            release_block_to_cache(block->address, site);
        }
    }
}

}  // namespace gpuviz::allocator
