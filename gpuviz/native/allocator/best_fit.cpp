#include <utility>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

namespace {

// The size to which an expandable block could grow: itself and the unmapped block after it.
std::uint64_t grown_size(const Block* block) {
    const bool can_grow = block->next != nullptr && !block->next->mapped;
    return block->size + (can_grow ? block->next->size : 0);
}

// The best fit from `at` on among blocks that may be expandable; end when there is none.
OrderedBlocks::Position fit_expandable(const OrderedBlocks& blocks, OrderedBlocks::Position at,
                                       bool expandable) {
    if (!expandable) {
        while (!blocks.is_end(at) && blocks.at(at)->expandable_segment != nullptr) {
            at = blocks.next(at);
        }
        return at;
    }
    while (blocks.at(at)->expandable_segment != nullptr) {
        const OrderedBlocks::Position next = blocks.next(at);
        if (blocks.is_end(next) || grown_size(blocks.at(next)) >= grown_size(blocks.at(at))) {
            break;
        }
        at = next;
    }
    return at;
}

}  // namespace

Block* CachingAllocator::take_free_block(const Request& request, bool count_search) {
    if (count_search && collects_garbage()) {
        ++request.pool->search_count;
    }
    OrderedBlocks& blocks = request.pool->free_blocks.of(request.stream);
    OrderedBlocks::Position at = blocks.lower_bound(request.size, 0);
    if (blocks.is_end(at)) {
        return nullptr;
    }
    Block* block = blocks.at(at);
    if (block->expandable_segment != nullptr) [[unlikely]] {
        at = fit_expandable(blocks, at, expandable_);
        if (blocks.is_end(at)) {
            return nullptr;
        }
        block = blocks.at(at);
    }
    const std::uint64_t oversize = settings_.max_split_size;
    if (request.size < oversize && block->size >= oversize) {
        return nullptr;
    }
    if (request.size >= oversize &&
        block->size >= request.size + settings_.max_non_split_rounding_size) {
        return nullptr;
    }
    blocks.erase(at);
    return block;
}

bool CachingAllocator::should_split(const Block& block, const Request& request) const {
    if (block.pool->owner != nullptr && block.pool->owner->no_split) {
        return false;
    }
    return is_split(block.pool->is_small || expandable_, request.size, block.size - request.size,
                    settings_.max_split_size);
}

// Creates a block of the first `size` bytes; `block` keeps the rest and returns to its pool.
Block* CachingAllocator::split(Block* block, std::uint64_t size) {
    Block* front = arena_.create(block->address, size, block->stream, block->pool);
    front->expandable_segment = block->expandable_segment;
    front->segment_stack = std::exchange(block->segment_stack, 0);
    front->previous = block->previous;
    front->next = block;
    if (front->previous != nullptr) {
        front->previous->next = front;
    }
    block->previous = front;
    block->address += size;
    block->size -= size;
    block->pool->insert(block);
    return front;
}

device::Address CachingAllocator::hand_out(Block* block, const Request& request,
                                           const record::CallSite& site) {
    const bool small = block->pool->is_small;
    const bool was_split = block->is_split();
    const bool counts_as_split = block->expandable_segment == nullptr;
    if (should_split(*block, request)) {
        Block* rest = block;
        block = split(block, request.size);
        if (counts_as_split && was_split) {
            statistics_.inactive_split_bytes.decrease(small, block->size);
        } else if (counts_as_split) {
            statistics_.inactive_split_bytes.increase(small, rest->size);
            statistics_.inactive_split.increase(small, 1);
        }
    } else if (counts_as_split && was_split) {
        statistics_.inactive_split_bytes.decrease(small, block->size);
        statistics_.inactive_split.decrease(small, 1);
    }
    if (poison_ != nullptr) [[unlikely]] {
        poison_->check(*block, site.stack);
    }
    return give(block, request.requested_size, site);
}

device::Address CachingAllocator::give(Block* block, std::uint64_t requested_size,
                                       const record::CallSite& site) {
    const bool small = block->pool->is_small;
    block->allocated = true;
    block->requested_size = requested_size;
    block->stack = site.stack;
    block->framework = site.framework;
    allocated_.insert(block);
    trace(record::Action::alloc, *block, block->size, requested_size, site);
    statistics_.allocation.increase(small, 1);
    statistics_.allocated_bytes.increase(small, block->size);
    statistics_.active.increase(small, 1);
    statistics_.active_bytes.increase(small, block->size);
    statistics_.requested_bytes.increase(small, requested_size);
    if (block->size >= settings_.max_split_size) {
        statistics_.oversize_allocations.increase(1);
    }
    return block->address;
}

// Merges `neighbour` into `block` if it is free; returns the bytes gained. `block` must not be in a
// set.
std::uint64_t CachingAllocator::merge(Block* block, Block* neighbour) {
    if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != block->mapped) {
        return 0;
    }
    if (neighbour->mapped) {
        neighbour->pool->free_blocks.erase(neighbour);
    } else {
        neighbour->pool->unmapped.erase(neighbour);
    }
    if (block->previous == neighbour) {
        block->address = neighbour->address;
        block->segment_stack = neighbour->segment_stack;
        block->previous = neighbour->previous;
        if (block->previous != nullptr) {
            block->previous->next = block;
        }
    } else {
        block->next = neighbour->next;
        if (block->next != nullptr) {
            block->next->previous = block;
        }
    }
    const std::uint64_t gained = neighbour->size;
    block->size += gained;
    arena_.destroy(neighbour);
    return gained;
}

void CachingAllocator::complete_free(Block* block, const record::CallSite& site) {
    trace(record::Action::free_completed, *block, block->size, block->requested_size, site);
    delayed_.released(*block);
    free_block(block);
}

void CachingAllocator::free_block(Block* block) {
    const bool small = block->pool->is_small;
    const std::uint64_t size = block->size;
    block->pending = false;
    std::int64_t split_count = 0;
    std::int64_t split_bytes = 0;
    for (Block* neighbour : {block->previous, block->next}) {
        const std::uint64_t gained = merge(block, neighbour);
        split_count -= gained > 0 ? 1 : 0;
        split_bytes -= static_cast<std::int64_t>(gained);
    }
    block->pool->insert(block);
    if (block->is_split()) {
        split_count += 1;
        split_bytes += static_cast<std::int64_t>(block->size);
    }
    if (block->expandable_segment == nullptr) {
        statistics_.inactive_split.change(small, split_count);
        statistics_.inactive_split_bytes.change(small, split_bytes);
    }
    statistics_.active.decrease(small, 1);
    statistics_.active_bytes.decrease(small, size);
    statistics_.requested_bytes.decrease(small, block->requested_size);
}

}  // namespace gpuviz::allocator
