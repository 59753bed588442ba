#include <unistd.h>

#include <algorithm>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

using record::CallSite;

namespace {

// Whether a block is a whole segment. Even a block above max_split_size may not be one, after a
// change of the settings.
bool is_segment(const Block* block) {
    return block->expandable_segment == nullptr && !block->is_split();
}

}  // namespace

// The steps after a cache miss, in torch's order; null: out of memory.
Block* CachingAllocator::find_or_make_block(const Request& request, const CallSite& site) {
    if (collects_garbage()) {
        collect_garbage(site);
    }
    if (Block* block = make_segment(request, false, site)) {
        return block;
    }
    if (Block* block = take_from_pools_used_on_oom(request)) {
        return block;
    }
    if (release_oversize_blocks(request, site)) {
        if (Block* block = make_segment(request, false, site)) {
            return block;
        }
    }
    if (frees_wait() || device_.is_capturing(request.stream)) {
        return nullptr;
    }
    release_cached_blocks(site);
    return make_segment(request, true, site);
}

Block* CachingAllocator::take_from_pools_used_on_oom(const Request& request) {
    if (request.pool->owner != nullptr) {
        return nullptr;
    }
    for (const auto& [number, pool] : private_pools_) {
        if (pool->use_on_oom) {
            Request elsewhere = request;
            elsewhere.pool = request.pool->is_small ? &pool->small : &pool->large;
            if (Block* block = take_free_block(elsewhere, true)) {
                return block;
            }
        }
    }
    return nullptr;
}

// Frees one cached block that is large enough, else blocks from the largest down.
bool CachingAllocator::release_oversize_blocks(const Request& request, const CallSite& site) {
    const std::uint64_t oversize = settings_.max_split_size;
    if (oversize == Settings::kUnlimited) {
        return false;
    }
    const std::uint64_t wanted = std::max(request.size, oversize);
    OrderedBlocks& blocks = request.pool->free_blocks.of(request.stream);
    OrderedBlocks::Position at = blocks.lower_bound(wanted, 0);
    if (!blocks.is_end(at) && is_segment(blocks.at(at))) {
        release_segment(blocks.at(at), site);
        return true;
    }
    std::vector<Block*> candidates;  // largest first
    while (!blocks.is_begin(at) && !blocks.empty()) {
        at = blocks.previous(at);
        if (blocks.at(at)->size < oversize) {
            break;
        }
        candidates.push_back(blocks.at(at));
    }
    std::uint64_t released = 0;
    for (Block* block : candidates) {
        if (released >= wanted) {
            break;
        }
        if (is_segment(block)) {
            released += block->size;
            release_segment(block, site);
        }
    }
    return released >= wanted;
}

void CachingAllocator::release_cached_blocks(const CallSite& site) {
    synchronize_events(nullptr, site);
    release_blocks(large_, site);
    release_blocks(small_, site);
    release_unused_pools(site);
}

std::uint64_t CachingAllocator::releasable_bytes() {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    arena_.for_each([&](const Block& first) {
        const PrivatePool* const owner = first.pool->owner;
        const bool is_emptied = owner == nullptr ? !frees_wait() : owner->use_count == 0;
        if (first.previous != nullptr || !is_emptied) {
            return;
        }
        for (const Block* block = &first; block != nullptr;) {
            AddressRange run{block->address, 0};
            const bool begins_segment = block->previous == nullptr;
            while (block != nullptr && is_released_when_emptied(*block)) {
                run.size += block->size;
                block = block->next;
            }
            if (first.expandable_segment != nullptr) {
                bytes += first.expandable_segment->pages_in(run).size;
            } else if (begins_segment && block == nullptr) {
                bytes += run.size;
            }
            if (block != nullptr) {
                block = block->next;
            }
        }
    });
    return bytes;
}

// A free that waits for streams completes, unless one of them is being captured.
bool CachingAllocator::is_released_when_emptied(const Block& block) const noexcept {
    return block.mapped && (block.is_free() || (block.pending && !frees_wait()));
}

void CachingAllocator::release_unused_pools(const CallSite& site) {
    for (auto entry = private_pools_.begin(); entry != private_pools_.end();) {
        entry = entry->second->use_count == 0 ? release_unused_pool(entry, site) : std::next(entry);
    }
}

// Removes the pool if nothing is left in it; returns the next one.
CachingAllocator::PrivatePools::iterator CachingAllocator::release_unused_pool(
    PrivatePools::iterator entry, const CallSite& site) {
    PrivatePool& pool = *entry->second;
    release_blocks(pool.small, site);
    release_blocks(pool.large, site);
    return pool.reserved_bytes == 0 ? private_pools_.erase(entry) : std::next(entry);
}

void CachingAllocator::release_blocks(BlockPool& pool, const CallSite& site) {
    std::vector<Block*> expandable;
    for (Block* block : pool.free_blocks.in_order()) {
        if (block->expandable_segment != nullptr) {
            expandable.push_back(block);
        } else if (!block->is_split()) {
            release_segment(block, site);
        }
    }
    for (Block* block : expandable) {
        unmap_block(block, site);
        if (!block->is_split()) {
            release_expandable_segment(block);
        }
    }
}

OutOfMemory CachingAllocator::out_of_memory(const Request& request, const CallSite& site) {
    const device::MemoryInfo memory = device_.memory_info();
    statistics_.num_ooms += 1;
    if (sink_ != nullptr) {
        Block failed{};
        failed.address = memory.free;
        failed.stream = request.stream;
        failed.pool = request.pool;
        sink_->push(
            event_of(record::Action::oom, failed, request.size, request.requested_size, site));
    }
    std::uint64_t private_pools_free = 0;
    for (const auto& [number, pool] : private_pools_) {
        for (const BlockPool* part : {&pool->small, &pool->large}) {
            for (const Block* block : part->free_blocks.in_order()) {
                private_pools_free += block->size;
            }
        }
    }
    return OutOfMemory(
        {.device = device_.ordinal(),
         .requested_size = request.requested_size,
         .alloc_size = segment_size(request.size, settings_.large_segment_size),
         .device_free = memory.free,
         .device_total = memory.total,
         .allocated = static_cast<std::uint64_t>(statistics_.allocated_bytes.current()),
         .reserved = reserved_,
         .private_pools_free = private_pools_free,
         .limit = limit_,
         .expandable_segments = expandable_,
         .processes = device_.processes(),
         .this_process = static_cast<std::uint32_t>(::getpid())});
}

}  // namespace gpuviz::allocator
