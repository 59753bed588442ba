#include "state/device_memory.hpp"

#include <algorithm>
#include <iterator>

#include "state/overlap.hpp"

namespace gpuviz::state {

using record::Action;

namespace {

// Above any address of a device; sums of sizes below it are less than 2**63.
constexpr std::uint64_t highest_end = std::uint64_t{1} << 62;

bool can_merge(const Block& left, std::uint64_t left_address, const Block& right,
               std::uint64_t right_address) noexcept {
    if (left.state != BlockState::inactive || right.state != BlockState::inactive) return false;
    if (left_address + left.size != right_address) return false;
    if (left.is_expandable && right.is_expandable) return left.pool == right.pool;
    return left.segment != nullptr && left.segment == right.segment;
}

Block inactive_block(std::uint64_t size, const Segment& home, const Segment* segment) noexcept {
    return {size,
            0,
            home.time_ns,
            segment,
            home.stream,
            home.pool,
            0,
            0,
            record::Framework::none,
            BlockState::inactive,
            home.is_expandable};
}

}  // namespace

DeviceMemory::DeviceMemory(const DeviceMemory& other)
    : blocks_(other.blocks_),
      segments_(other.segments_),
      free_sizes_(other.free_sizes_),
      counts_free_sizes_(other.counts_free_sizes_),
      totals_(other.totals_),
      anomalies_(other.anomalies_),
      live_outside_(other.live_outside_),
      outside_bytes_(other.outside_bytes_),
      seen_outside_(other.seen_outside_),
      seen_segment_(other.seen_segment_) {
    for (auto& [address, block] : blocks_) {
        if (block.segment == nullptr) continue;
        block.segment = &std::prev(segments_.upper_bound(address))->second;
    }
}

void DeviceMemory::apply(const DeviceEvent& event) {
    const bool has_range = event.action != Action::oom;
    if (has_range && (event.size > highest_end || event.address > highest_end - event.size)) {
        ++anomalies_;
        return;
    }
    switch (event.action) {
        case Action::alloc:
            return allocate(event);
        case Action::free_requested: {
            const auto block = find_live(event.address);
            if (block == blocks_.end() || block->second.state != BlockState::active_allocated) {
                ++anomalies_;
                return;
            }
            return request_free(block);
        }
        case Action::free_completed: {
            const auto block = find_live(event.address);
            if (block == blocks_.end()) {
                ++anomalies_;
                return;
            }
            return complete_free(block);
        }
        case Action::segment_alloc:
            return add_segment(event);
        case Action::segment_free:
            return free_segment(event);
        case Action::segment_map:
            return map_pages(event);
        case Action::segment_unmap:
            return unmap_pages(event);
        case Action::oom:
            ++totals_.num_ooms;
            return;
        case Action::record_stream:
        case Action::snapshot:
        case Action::annotate:
        case Action::empty_cache:
            return;
        case Action::memory_limit:
            memory_limit_ = bytes(event.size);
            return;
    }
}

std::uint64_t DeviceMemory::largest_of(PoolKind kind) const {
    if (!counts_free_sizes_) {
        counts_free_sizes_ = true;
        for (const auto& [address, block] : blocks_) {
            if (block.state == BlockState::inactive) free_sizes_[block.pool & 1].add(block.size);
        }
    }
    if (kind == PoolKind::small_pool) return free_sizes_[0].largest();
    if (kind == PoolKind::large_pool) return free_sizes_[1].largest();
    return std::max(free_sizes_[0].largest(), free_sizes_[1].largest());
}

std::int64_t DeviceMemory::largest_free(PoolKind kind) const {
    if (live_outside_ > 0 || (seen_outside_ && !seen_segment_)) return -1;
    return bytes(largest_of(kind));
}

MemoryParts DeviceMemory::parts() const {
    const auto now = [&](Quantity quantity) { return totals_.of(quantity, PoolKind::all).current; };
    const std::int64_t reserved = now(Quantity::reserved_bytes);
    return {
        .reserved = reserved,
        .free = reserved - (now(Quantity::active_bytes) - outside_bytes_),
        .inactive_split = now(Quantity::inactive_split_bytes),
        .largest_free = bytes(largest_of(PoolKind::all)),
        .outside = outside_bytes_,
    };
}

void DeviceMemory::allocate(DeviceEvent event) {
    if (event.size == 0) {
        ++anomalies_;
        return;
    }
    if (event.requested_size > event.size) {
        ++anomalies_;
        event.requested_size = event.size;
    }
    auto home = find_covering(event.address, event.end());
    if (home == blocks_.end() || home->second.state != BlockState::inactive) {
        evict_live(event.address, event.end());
        home = find_covering(event.address, event.end());
    }
    if (home != blocks_.end()) {
        take(home, event);
    } else {
        add_outside(event);
    }
    totals_.change(Quantity::allocation, event.pool, 1);
    totals_.change(Quantity::allocated_bytes, event.pool, bytes(event.size));
    totals_.change(Quantity::active, event.pool, 1);
    totals_.change(Quantity::active_bytes, event.pool, bytes(event.size));
    totals_.change(Quantity::requested_bytes, event.pool, bytes(event.requested_size));
}

void DeviceMemory::take(Blocks::iterator home, const DeviceEvent& event) {
    const Block free = home->second;
    const std::uint64_t before = event.address - home->first;
    const std::uint64_t after = free.size - before - event.size;
    uncount_free_block(free);
    const Block taken{event.size,        event.requested_size,
                      event.time_ns,     free.segment,
                      event.stream,      event.pool,
                      event.stack,       event.thread,
                      event.framework,   BlockState::active_allocated,
                      free.is_expandable};
    auto block = home;
    if (before > 0) {
        home->second.size = before;
        count_free_block(home->second);
        block = blocks_.emplace_hint(std::next(home), event.address, taken);
    } else {
        home->second = taken;
    }
    if (after > 0) {
        Block rest = free;
        rest.size = after;
        count_free_block(rest);
        blocks_.emplace_hint(std::next(block), event.end(), rest);
    }
    last_found_ = block;
    if (free.segment == nullptr) return;
    const int pieces = (before > 0 ? 1 : 0) + (after > 0 ? 1 : 0);
    const bool was_split = free.is_split();
    totals_.change(Quantity::inactive_split, free.pool, pieces - (was_split ? 1 : 0));
    totals_.change(Quantity::inactive_split_bytes, free.pool,
                   bytes(before + after) - (was_split ? bytes(free.size) : 0));
}

// Conflicting free blocks mean that the range extends beyond a known segment; the new event wins.
void DeviceMemory::add_outside(const DeviceEvent& event) {
    evict_segments(event.address, event.end());
    last_found_ =
        blocks_
            .insert_or_assign(event.address,
                              Block{event.size, event.requested_size, event.time_ns, nullptr,
                                    event.stream, event.pool, event.stack, event.thread,
                                    event.framework, BlockState::active_allocated, false})
            .first;
    ++live_outside_;
    outside_bytes_ += bytes(event.size);
    seen_outside_ = true;
}

void DeviceMemory::request_free(Blocks::iterator block) {
    Block& freed = block->second;
    if (requested_ != nullptr) requested_->push_back(freed.time_ns);
    freed.state = BlockState::active_pending_free;
    totals_.change(Quantity::allocation, freed.pool, -1);
    totals_.change(Quantity::allocated_bytes, freed.pool, -bytes(freed.size));
}

void DeviceMemory::complete_free(Blocks::iterator block) {
    if (block->second.state == BlockState::active_allocated) {
        ++anomalies_;
        request_free(block);
    }
    Block& freed = block->second;
    if (completed_ != nullptr) completed_->push_back(freed.time_ns);
    totals_.change(Quantity::active, freed.pool, -1);
    totals_.change(Quantity::active_bytes, freed.pool, -bytes(freed.size));
    totals_.change(Quantity::requested_bytes, freed.pool, -bytes(freed.requested_size));
    last_found_ = blocks_.end();
    if (!freed.has_segment()) {
        --live_outside_;
        outside_bytes_ -= bytes(freed.size);
        blocks_.erase(block);
        return;
    }
    const Segment& home = freed.segment != nullptr
                              ? *freed.segment
                              : std::prev(segments_.upper_bound(block->first))->second;
    freed = inactive_block(freed.size, home, freed.segment);
    const Merged merged = merge(block);
    const Block& free = merged.block->second;
    if (free.segment == nullptr) return;
    const bool is_split = free.is_split();
    totals_.change(Quantity::inactive_split, free.pool, (is_split ? 1 : 0) - merged.absorbed);
    totals_.change(Quantity::inactive_split_bytes, free.pool,
                   (is_split ? bytes(free.size) : 0) - bytes(merged.absorbed_bytes));
}

void DeviceMemory::add_inactive(std::uint64_t address, std::uint64_t size, const Segment& home) {
    const Segment* segment = home.is_expandable ? nullptr : &home;
    last_found_ = blocks_.end();
    merge(blocks_.insert_or_assign(address, inactive_block(size, home, segment)).first);
}

DeviceMemory::Merged DeviceMemory::merge(Blocks::iterator block) {
    Merged merged{block, 0, 0};
    const auto absorb = [&](Blocks::iterator left, Blocks::iterator right,
                            Blocks::iterator neighbour) {
        ++merged.absorbed;
        merged.absorbed_bytes += neighbour->second.size;
        uncount_free_block(neighbour->second);
        left->second.size += right->second.size;
        blocks_.erase(right);
        merged.block = left;
    };
    const auto next = std::next(block);
    if (next != blocks_.end() &&
        can_merge(block->second, block->first, next->second, next->first)) {
        absorb(block, next, next);
    }
    if (block != blocks_.begin()) {
        const auto previous = std::prev(block);
        if (can_merge(previous->second, previous->first, block->second, block->first)) {
            absorb(previous, block, previous);
        }
    }
    count_free_block(merged.block->second);
    return merged;
}

DeviceMemory::Blocks::iterator DeviceMemory::find_live(std::uint64_t address) {
    const bool is_last = last_found_ != blocks_.end() && last_found_->first == address;
    const auto block = is_last ? last_found_ : blocks_.find(address);
    if (block == blocks_.end() || block->second.state == BlockState::inactive) return blocks_.end();
    last_found_ = block;
    return block;
}

DeviceMemory::Blocks::iterator DeviceMemory::find_covering(std::uint64_t address,
                                                           std::uint64_t end) {
    const auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return blocks_.end();
    const auto block = std::prev(next);
    return block->first + block->second.size >= end ? block : blocks_.end();
}

void DeviceMemory::evict_live(std::uint64_t address, std::uint64_t end) {
    auto block = first_overlapping(blocks_, address);
    while (block != blocks_.end() && block->first < end) {
        if (block->second.state == BlockState::inactive) {
            ++block;
            continue;
        }
        ++anomalies_;
        if (block->second.state == BlockState::active_allocated) request_free(block);
        complete_free(block);
        block = first_overlapping(blocks_, address);
    }
}

}  // namespace gpuviz::state
