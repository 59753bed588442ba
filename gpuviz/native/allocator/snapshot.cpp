#include "allocator/snapshot.hpp"

#include <algorithm>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

using record::Action;

namespace {

bool is_first_of_segment(const Block& block) {
    return block.mapped && (block.previous == nullptr || !block.previous->mapped);
}

BlockState state_of(const Block& block) {
    if (block.allocated) {
        return BlockState::active_allocated;
    }
    return block.pending ? BlockState::active_pending_free : BlockState::inactive;
}

SnapshotSegment describe(const Block& first, int device) {
    const PrivatePool* owner = first.pool->owner;
    SnapshotSegment segment{.address = first.address,
                            .stream = first.stream,
                            .pool = owner == nullptr ? 0 : owner->number,
                            .device = device,
                            .is_small = first.pool->is_small,
                            .is_expandable = first.expandable_segment != nullptr,
                            .stack = first.segment_stack,
                            .blocks = {}};
    for (const Block* block = &first; block != nullptr && block->mapped; block = block->next) {
        const BlockState state = state_of(*block);
        const bool active = state != BlockState::inactive;
        segment.total_size += block->size;
        segment.allocated_size += block->allocated ? block->size : 0;
        segment.active_size += active ? block->size : 0;
        segment.requested_size += active ? block->requested_size : 0;
        segment.blocks.push_back({.address = block->address,
                                  .size = block->size,
                                  .requested_size = block->requested_size,
                                  .state = state,
                                  .stack = active ? block->stack : 0});
    }
    return segment;
}

}  // namespace

Snapshot CachingAllocator::snapshot() {
    const std::lock_guard lock(mutex_);
    Snapshot segments;
    std::uint64_t active = 0;
    arena_.for_each([&](const Block& block) {
        if (is_first_of_segment(block)) {
            segments.push_back(describe(block, device_.ordinal()));
            active += segments.back().active_size;
        }
    });
    std::sort(segments.begin(), segments.end(),
              [](const auto& left, const auto& right) { return left.address < right.address; });
    if (sink_ != nullptr) {
        Block everything{};
        everything.pool = &small_;
        sink_->push(event_of(Action::snapshot, everything, active, 0, {}));
    }
    return segments;
}

bool CachingAllocator::owns(device::Address address) const {
    const std::lock_guard lock(mutex_);
    return allocated_.find(address) != nullptr;
}

std::optional<BlockDetails> CachingAllocator::block_at(device::Address address) const {
    const std::lock_guard lock(mutex_);
    const Block* block = allocated_.find(address);
    if (block == nullptr) {
        return std::nullopt;
    }
    const PrivatePool* owner = block->pool->owner;
    return BlockDetails{.address = block->address,
                        .size = block->size,
                        .requested_size = block->requested_size,
                        .stream = block->stream,
                        .pool = owner == nullptr ? 0 : owner->number,
                        .stack = block->stack};
}

void CachingAllocator::describe_state(record::MemoryEventSink& sink, bool stacks_are_valid) {
    const std::lock_guard lock(mutex_);
    std::vector<const Block*> segments;
    arena_.for_each([&](const Block& block) {
        if (is_first_of_segment(block)) {
            segments.push_back(&block);
        }
    });
    std::sort(segments.begin(), segments.end(),
              [](const Block* left, const Block* right) { return left->address < right->address; });
    const auto site = [&](std::uint32_t stack) {
        return record::CallSite{.stack = stacks_are_valid ? stack : 0};
    };
    if (limit_ || settings_.per_process_memory_fraction) {
        sink.push(limit_event({}));
    }
    for (const Block* first : segments) {
        const SnapshotSegment segment = describe(*first, device_.ordinal());
        sink.push(event_of(segment.is_expandable ? Action::segment_map : Action::segment_alloc,
                           *first, segment.total_size, 0, site(first->segment_stack)));
        for (const Block* block = first; block != nullptr && block->mapped; block = block->next) {
            if (!block->is_free()) {
                sink.push(event_of(Action::alloc, *block, block->size, block->requested_size,
                                   site(block->stack)));
            }
            if (block->pending) {
                sink.push(event_of(Action::free_requested, *block, block->size,
                                   block->requested_size, {}));
            }
        }
    }
}

device::Address CachingAllocator::restore_segment(std::uint64_t size, device::StreamHandle stream,
                                                  std::uint64_t pool, bool is_small,
                                                  const record::CallSite& site) {
    const std::lock_guard lock(mutex_);
    BlockPool& home = pool_of(pool, is_small);
    restored_ = add_segment(home, size, stream, site);
    if (restored_ == nullptr) {
        return 0;
    }
    home.insert(restored_);
    return restored_->address;
}

device::Address CachingAllocator::restore_pages(device::Address address, std::uint64_t size,
                                                device::StreamHandle stream, std::uint64_t pool,
                                                bool is_small, const record::CallSite& site) {
    const std::lock_guard lock(mutex_);
    BlockPool& home = pool_of(pool, is_small);
    restored_ = nullptr;
    const auto known = std::find_if(home.unmapped.begin(), home.unmapped.end(), [&](Block* each) {
        return each->stream == stream && each->address <= address &&
               address - each->address < each->size &&
               size <= each->size - (address - each->address);
    });
    Block* block = nullptr;
    if (known != home.unmapped.end()) {
        block = *known;
        if (address > block->address) {
            block = split_unmapped(block, address - block->address);
        }
    } else {
        block = add_expandable_segment(home, stream);
    }
    if (!map_block(block, std::min(size, block->size), site)) {
        return 0;
    }
    restored_ = block;
    return block->address;
}

device::Address CachingAllocator::restore_block(std::uint64_t gap, std::uint64_t size,
                                                std::uint64_t requested_size,
                                                const record::CallSite& site) {
    const std::lock_guard lock(mutex_);
    if (restored_ == nullptr || size == 0 || gap > restored_->size ||
        size > restored_->size - gap) {
        return 0;
    }
    Block* block = restored_;
    BlockPool& pool = *block->pool;
    std::int64_t free_pieces = block->is_split() ? -1 : 0;
    std::int64_t free_bytes = block->is_split() ? -static_cast<std::int64_t>(block->size) : 0;
    pool.free_blocks.erase(block);
    if (gap > 0) {
        pool.insert(split(block, gap));
        pool.free_blocks.erase(block);
        free_pieces += 1;
        free_bytes += static_cast<std::int64_t>(gap);
    }
    restored_ = nullptr;
    if (size < block->size) {
        restored_ = block;
        block = split(block, size);
        free_pieces += 1;
        free_bytes += static_cast<std::int64_t>(restored_->size);
    }
    if (block->expandable_segment == nullptr) {
        statistics_.inactive_split.change(pool.is_small, free_pieces);
        statistics_.inactive_split_bytes.change(pool.is_small, free_bytes);
    }
    return give(block, requested_size, site);
}

}  // namespace gpuviz::allocator
