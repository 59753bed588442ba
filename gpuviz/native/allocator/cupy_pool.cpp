#include "allocator/cupy_pool.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "allocator/out_of_memory.hpp"
#include "allocator/size_classes.hpp"
#include "record/clock.hpp"

namespace gpuviz::allocator {

using device::Address;
using record::Action;
using record::CallSite;

namespace {

// All blocks count as those of one pool.
constexpr bool counted_as_small = true;

}  // namespace

Address CupyPool::allocate(std::uint64_t size, device::StreamHandle stream, const CallSite& site,
                           bool) {
    if (size == 0) {
        return 0;
    }
    const std::uint64_t rounded =
        size < kLargestRequest ? round_up(size, kMinBlockSize) : kLargestRequest;
    Block* block = take_free_block(rounded, stream);
    if (block == nullptr) {
        block = make_segment(rounded, stream, site);
    }
    if (block == nullptr) {
        fail(size, rounded, stream, site);
    }
    block->allocated = true;
    block->requested_size = size;
    allocated_.insert(block);
    statistics_.allocation.increase(counted_as_small, 1);
    statistics_.active.increase(counted_as_small, 1);
    statistics_.allocated_bytes.increase(counted_as_small, block->size);
    statistics_.active_bytes.increase(counted_as_small, block->size);
    statistics_.requested_bytes.increase(counted_as_small, size);
    trace(Action::alloc, *block, block->size, size, site);
    return block->address;
}

Block* CupyPool::take_free_block(std::uint64_t size, device::StreamHandle stream) {
    OrderedBlocks& blocks = pool_.free_blocks.of(stream);
    const OrderedBlocks::Position at = blocks.lower_bound(size, 0);
    if (blocks.is_end(at)) {
        return nullptr;
    }
    Block* block = blocks.at(at);
    remove(block);
    if (block->size > size) {
        Block* rest = arena_.create(block->address + size, block->size - size, stream, &pool_);
        rest->previous = block;
        rest->next = block->next;
        if (rest->next != nullptr) {
            rest->next->previous = rest;
        }
        block->next = rest;
        block->size = size;
        insert(rest);
    }
    return block;
}

Block* CupyPool::make_segment(std::uint64_t size, device::StreamHandle stream,
                              const CallSite& site) {
    if (limit_ && reserved_ + size > *limit_) {
        return nullptr;
    }
    std::optional<Address> address = device_.allocate(size);
    if (!address) {
        release_segments(site);
        ++statistics_.num_alloc_retries;
        address = device_.allocate(size);
    }
    if (!address) {
        return nullptr;
    }
    Block* block = arena_.create(*address, size, stream, &pool_);
    reserved_ += size;
    statistics_.reserved_bytes.increase(counted_as_small, size);
    statistics_.segment.increase(counted_as_small, 1);
    ++statistics_.num_device_alloc;
    trace(Action::segment_alloc, *block, size, 0, site);
    return block;
}

void CupyPool::fail(std::uint64_t requested_size, std::uint64_t size, device::StreamHandle stream,
                    const CallSite& site) {
    const device::MemoryInfo memory = device_.memory_info();
    ++statistics_.num_ooms;
    Block nothing{};
    nothing.address = memory.free;
    nothing.stream = stream;
    trace(Action::oom, nothing, size, requested_size, site);
    OutOfMemoryReport report;
    report.device = device_.ordinal();
    report.requested_size = requested_size;
    report.alloc_size = size;
    report.device_free = memory.free;
    report.device_total = memory.total;
    report.allocated = static_cast<std::uint64_t>(statistics_.allocated_bytes.current());
    report.reserved = reserved_;
    report.limit = limit_;
    throw OutOfMemory(report);
}

void CupyPool::free(Address address, const CallSite& site) {
    Block* block = allocated_.take(address);
    if (block == nullptr) {
        std::ostringstream text;
        text << "CuPy's pool has no allocated block at 0x" << std::hex << address << ".";
        throw std::invalid_argument(text.str());
    }
    trace(Action::free_requested, *block, block->size, block->requested_size, site, true);
    block->allocated = false;
    statistics_.allocation.decrease(counted_as_small, 1);
    statistics_.active.decrease(counted_as_small, 1);
    statistics_.allocated_bytes.decrease(counted_as_small, block->size);
    statistics_.active_bytes.decrease(counted_as_small, block->size);
    statistics_.requested_bytes.decrease(counted_as_small, block->requested_size);
    if (block->next != nullptr && block->next->is_free()) {
        remove(block->next);
        join_with_next(block);
    }
    if (Block* before = block->previous; before != nullptr && before->is_free()) {
        remove(before);
        join_with_next(before);
        block = before;
    }
    insert(block);
}

void CupyPool::join_with_next(Block* block) {
    Block* next = block->next;
    block->size += next->size;
    block->next = next->next;
    if (block->next != nullptr) {
        block->next->previous = block;
    }
    arena_.destroy(next);
}

void CupyPool::insert(Block* block) {
    pool_.insert(block);
    if (block->is_split()) {
        statistics_.inactive_split.increase(counted_as_small, 1);
        statistics_.inactive_split_bytes.increase(counted_as_small, block->size);
    }
}

void CupyPool::remove(Block* block) {
    pool_.free_blocks.erase(block);
    if (block->is_split()) {
        statistics_.inactive_split.decrease(counted_as_small, 1);
        statistics_.inactive_split_bytes.decrease(counted_as_small, block->size);
    }
}

std::uint64_t CupyPool::release_segments(const CallSite& site) {
    std::uint64_t released = 0;
    for (Block* block : pool_.free_blocks.in_order()) {
        if (block->is_split()) {
            continue;
        }
        trace(Action::segment_free, *block, block->size, 0, site);
        device_.free(block->address, block->size);
        statistics_.reserved_bytes.decrease(counted_as_small, block->size);
        statistics_.segment.decrease(counted_as_small, 1);
        ++statistics_.num_device_free;
        reserved_ -= block->size;
        released += block->size;
        remove(block);
        arena_.destroy(block);
    }
    return released;
}

void CupyPool::empty_cache(const CallSite& site) {
    Block nothing{};
    trace(Action::empty_cache, nothing, release_segments(site), 0, site);
}

void CupyPool::set_memory_limit(std::uint64_t bytes, const CallSite& site) {
    const std::uint64_t total = device_.total_memory();
    limit_ = bytes < total ? std::optional(bytes) : std::nullopt;
    Block nothing{};
    trace(Action::memory_limit, nothing, std::min(bytes, total), 0, site);
}

void CupyPool::trace(Action action, const Block& block, std::uint64_t size,
                     std::uint64_t requested_size, const CallSite& site, bool completed) const {
    if (sink_ == nullptr) {
        return;
    }
    record::MemoryEvent event{};
    event.time_ns = record::now_ns();
    event.address = block.address;
    event.size = size;
    event.requested_size = requested_size;
    event.stream = block.stream;
    event.stack = site.stack;
    event.thread = site.thread;
    event.range = site.range;
    event.framework = site.framework;
    event.device = static_cast<std::uint16_t>(device_.ordinal());
    event.action = action;
    event.completed = completed;
    sink_->push(event);
}

}  // namespace gpuviz::allocator
