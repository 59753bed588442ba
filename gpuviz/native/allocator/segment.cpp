#include <algorithm>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

using device::Address;
using record::Action;
using record::CallSite;

namespace {

bool has_room(const Block* block, std::uint64_t size) {
    std::uint64_t room = 0;
    while (room < size && block != nullptr && block->is_free()) {
        room += block->size;
        block = block->next;
    }
    return room >= size;
}

}  // namespace

void CachingAllocator::add_reserved(const BlockPool& pool, std::uint64_t size) {
    reserved_ += size;
    statistics_.reserved_bytes.increase(pool.is_small, size);
    statistics_.num_device_alloc += 1;
    if (pool.owner != nullptr) {
        pool.owner->reserved_bytes += size;
    }
}

void CachingAllocator::subtract_reserved(const BlockPool& pool, std::uint64_t size) {
    reserved_ -= size;
    statistics_.reserved_bytes.decrease(pool.is_small, size);
    statistics_.num_device_free += 1;
    if (pool.owner != nullptr) {
        pool.owner->reserved_bytes -= size;
    }
}

// A block of a new segment, in no set; null if the limit or the device rejects it.
Block* CachingAllocator::make_segment(const Request& request, bool is_retry, const CallSite& site) {
    statistics_.num_alloc_retries += is_retry ? 1 : 0;
    const std::uint64_t size = segment_size(request.size, settings_.large_segment_size);
    if (limit_ && reserved_ + size > *limit_) {
        return nullptr;
    }
    if (expandable_) {
        return grow_expandable_segment(request, site);
    }
    return add_segment(*request.pool, size, request.stream, site);
}

Block* CachingAllocator::add_segment(BlockPool& pool, std::uint64_t size,
                                     device::StreamHandle stream, const CallSite& site) {
    const std::optional<Address> address = device_.allocate(size);
    if (!address) {
        return nullptr;
    }
    Block* block = arena_.create(*address, size, stream, &pool);
    block->segment_stack = site.stack;
    add_reserved(pool, block->size);
    statistics_.segment.increase(pool.is_small, 1);
    if (block->size >= settings_.max_split_size) {
        statistics_.oversize_segments.increase(1);
    }
    if (tracker_ != nullptr) {
        tracker_->add_segment(block->address, block->size, stream);
    }
    trace(Action::segment_alloc, *block, block->size, 0, site);
    return block;
}

// Returns a free segment to the device.
void CachingAllocator::release_segment(Block* block, const CallSite& site) {
    trace(Action::segment_free, *block, block->size, 0, site);
    if (poison_ != nullptr) {
        poison_->forget(block->address, block->size);
    }
    device_.free(block->address, block->size);
    if (tracker_ != nullptr) {
        tracker_->remove_segment(block->address);
    }
    statistics_.segment.decrease(block->pool->is_small, 1);
    if (block->size >= settings_.max_split_size) {
        statistics_.oversize_segments.decrease(1);
    }
    subtract_reserved(*block->pool, block->size);
    block->pool->free_blocks.erase(block);
    arena_.destroy(block);
}

Block* CachingAllocator::grow_expandable_segment(const Request& request, const CallSite& site) {
    Block* block = find_growable_block(request);
    if (!block->mapped && !map_block(block, std::min(block->size, request.size), site)) {
        return nullptr;
    }
    while (block->size < request.size) {
        Block* next = block->next;
        if (!map_block(next, std::min(request.size - block->size, next->size), site)) {
            return nullptr;
        }
        block = next;  // into which the previous block was merged
    }
    request.pool->free_blocks.erase(block);
    return block;
}

// The lowest block from which free and unmapped neighbours cover the request.
Block* CachingAllocator::find_growable_block(const Request& request) {
    Block key{};
    key.stream = request.stream;
    auto& unmapped = request.pool->unmapped;
    for (auto entry = unmapped.lower_bound(&key);
         entry != unmapped.end() && (*entry)->stream == request.stream; ++entry) {
        Block* block = *entry;
        if (block->previous != nullptr && block->previous->is_free()) {
            block = block->previous;
        }
        if (has_room(block, request.size)) {
            return block;
        }
    }
    return add_expandable_segment(*request.pool, request.stream);
}

Block* CachingAllocator::add_expandable_segment(BlockPool& pool, device::StreamHandle stream) {
    // The driver maps multiples of 2 MiB.
    const std::uint64_t page =
        pool.is_small ? kSmallBuffer : round_up(settings_.large_segment_size, kRoundLarge);
    ExpandableSegment& segment = expandable_segments_.emplace_back(device_, stream, page);
    Block* block = arena_.create(segment.address(), segment.size(), stream, &pool);
    block->expandable_segment = &segment;
    block->mapped = false;
    pool.unmapped.insert(block);
    if (tracker_ != nullptr) {
        tracker_->add_segment(block->address, block->size, stream);
    }
    return block;
}

// Cuts an unmapped block after `size` bytes; returns the part behind.
Block* CachingAllocator::split_unmapped(Block* block, std::uint64_t size) {
    Block* rest =
        arena_.create(block->address + size, block->size - size, block->stream, block->pool);
    rest->mapped = false;
    rest->expandable_segment = block->expandable_segment;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next != nullptr) {
        rest->next->previous = rest;
    }
    block->next = rest;
    block->size = size;
    block->pool->unmapped.insert(rest);
    return rest;
}

// Maps the first `size` bytes of an unmapped block, rounded up to pages, and makes them a free
// block, merged with its neighbours. False: out of memory, nothing changed.
bool CachingAllocator::map_block(Block* block, std::uint64_t size, const CallSite& site) {
    const AddressRange mapped = block->expandable_segment->map({block->address, size});
    if (mapped.size == 0) {
        return false;
    }
    BlockPool& pool = *block->pool;
    pool.unmapped.erase(block);
    if (mapped.size < block->size) {
        split_unmapped(block, mapped.size);
    }
    block->mapped = true;
    block->segment_stack = site.stack;
    Block made{};
    made.address = mapped.address;
    made.stream = block->stream;
    made.pool = &pool;
    merge(block, block->previous);
    merge(block, block->next);
    pool.insert(block);
    add_reserved(pool, mapped.size);
    trace(Action::segment_map, made, mapped.size, 0, site);
    return true;
}

void CachingAllocator::add_free_piece(Block* block, AddressRange range, Block* previous,
                                      Block* next) {
    if (range.size == 0) {
        return;
    }
    Block* piece = arena_.create(range.address, range.size, block->stream, block->pool);
    piece->expandable_segment = block->expandable_segment;
    piece->segment_stack = block->segment_stack;
    piece->previous = previous;
    piece->next = next;
    if (previous != nullptr) {
        previous->next = piece;
    }
    if (next != nullptr) {
        next->previous = piece;
    }
    block->pool->insert(piece);
}

// Unmaps the whole pages of a free block; parts of pages stay free.
void CachingAllocator::unmap_block(Block* block, const CallSite& site) {
    const AddressRange taken = block->expandable_segment->unmap({block->address, block->size});
    if (taken.size == 0) {
        return;
    }
    if (poison_ != nullptr) {
        poison_->forget(taken.address, taken.size);
    }
    BlockPool& pool = *block->pool;
    pool.free_blocks.erase(block);
    const Address end = block->address + block->size;
    const Address taken_end = taken.address + taken.size;
    add_free_piece(block, {block->address, taken.address - block->address}, block->previous, block);
    add_free_piece(block, {taken_end, end - taken_end}, block, block->next);
    block->address = taken.address;
    block->size = taken.size;
    block->mapped = false;
    subtract_reserved(pool, taken.size);
    trace(Action::segment_unmap, *block, taken.size, 0, site);
    merge(block, block->previous);
    merge(block, block->next);
    pool.unmapped.insert(block);
}

void CachingAllocator::release_expandable_segment(Block* block) {
    if (block->mapped) {
        return;
    }
    block->pool->unmapped.erase(block);
    if (tracker_ != nullptr) {
        tracker_->remove_segment(block->address);
    }
    expandable_segments_.remove_if([block](const ExpandableSegment& segment) {
        return &segment == block->expandable_segment;
    });
    arena_.destroy(block);
}

// Ignores errors: if the device is already gone, its memory is released.
void CachingAllocator::release_everything() noexcept {
    sink_ = nullptr;  // may be destroyed already
    try {
        events_.discard();
        for (const SnapshotSegment& segment : snapshot()) {
            if (!segment.is_expandable) {
                device_.free(segment.address, segment.total_size);
                continue;
            }
            const auto owner = std::find_if(
                expandable_segments_.begin(), expandable_segments_.end(),
                [&](const ExpandableSegment& range) { return range.contains(segment.address); });
            owner->unmap({segment.address, segment.total_size});
        }
    } catch (const device::DeviceError&) {
        return;
    }
}

}  // namespace gpuviz::allocator
