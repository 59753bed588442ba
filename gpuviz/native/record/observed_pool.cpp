#include "record/observed_pool.hpp"

#include <algorithm>
#include <iterator>

#include "record/clock.hpp"

namespace gpuviz::record {

ObservedPool::ObservedPool(int device, std::uint64_t total, std::uint32_t pool)
    : device_(static_cast<std::uint16_t>(device)),
      pool_(pool),
      unseen_(total == kUnknownTotal ? 0 : total) {}

void ObservedPool::push(Action action, const Allocation& allocation, const CallSite& site,
                        bool completed) const noexcept {
    if (sink_ == nullptr) {
        return;
    }
    MemoryEvent event{};
    event.time_ns = now_ns();
    event.address = allocation.address;
    event.size = allocation.size;
    event.requested_size = allocation.requested_size;
    event.stream = allocation.stream;
    event.stack = site.stack;
    event.pool = pool_;
    event.thread = site.thread;
    event.range = site.range;
    event.framework = site.framework;
    event.device = device_;
    event.action = action;
    event.completed = completed;
    sink_->push(event);
}

ObservedPool::Segments::iterator ObservedPool::segment_of(std::uint64_t address) {
    const auto after = segments_.upper_bound(address);
    if (after == segments_.begin()) {
        return segments_.end();
    }
    const auto segment = std::prev(after);
    return address < segment->first + segment->second.size ? segment : segments_.end();
}

bool ObservedPool::begins_segment(const Allocation& allocation, std::uint64_t total) {
    const auto segment = segment_of(allocation.address);
    const bool is_known = segment != segments_.end() && allocation.address + allocation.size <=
                                                            segment->first + segment->second.size;
    return !is_known && (unseen_ == 0 || total > unseen_ + seen_);
}

void ObservedPool::allocated(const Allocation& allocation, std::uint64_t total,
                             const CallSite& site) {
    if (total != kUnknownTotal && (total < unseen_ + seen_ || begins_segment(allocation, total))) {
        // A full pool releases segments before it allocates another.
        drop_segments(total - std::min(total, allocation.size), site);
        if (begins_segment(allocation, total)) {
            add_segment(allocation, total, site);
        }
    }
    const auto segment = segment_of(allocation.address);
    if (segment != segments_.end()) {
        ++segment->second.live_blocks;
    }
    blocks_.insert_or_assign(allocation.address, allocation);
    push(Action::alloc, allocation, site);
}

void ObservedPool::update(std::uint64_t total, const CallSite& site) {
    if (total != kUnknownTotal) {
        drop_segments(total, site);
    }
}

void ObservedPool::add_segment(const Allocation& allocation, std::uint64_t total,
                               const CallSite& site) {
    const std::uint64_t held = unseen_ + seen_;
    const std::uint64_t size = total > held ? total - held : allocation.size;
    segments_.emplace(allocation.address, Segment{size, allocation.stream, 0});
    seen_ += size;
    push(Action::segment_alloc, {allocation.address, size, 0, allocation.stream}, site);
}

void ObservedPool::drop_segments(std::uint64_t total, const CallSite& site) {
    for (auto segment = segments_.begin(); segment != segments_.end() && unseen_ + seen_ > total;) {
        const std::uint64_t excess = unseen_ + seen_ - total;
        if (segment->second.live_blocks != 0 || segment->second.size > excess) {
            ++segment;
            continue;
        }
        seen_ -= segment->second.size;
        push(Action::segment_free,
             {segment->first, segment->second.size, 0, segment->second.stream}, site);
        segment = segments_.erase(segment);
    }
    unseen_ -= std::min(unseen_, unseen_ + seen_ - std::min(total, unseen_ + seen_));
}

void ObservedPool::freed(std::uint64_t address, const CallSite& site) {
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) {
        return;
    }
    push(Action::free_requested, block->second, site, true);
    const auto segment = segment_of(address);
    if (segment != segments_.end()) {
        --segment->second.live_blocks;
    }
    blocks_.erase(block);
}

void ObservedPool::out_of_memory(std::uint64_t requested_size, std::uint64_t stream,
                                 const CallSite& site) {
    push(Action::oom, {0, requested_size, requested_size, stream}, site);
}

void ObservedPool::describe_state(const CallSite& site) const {
    for (const auto& [address, segment] : segments_) {
        push(Action::segment_alloc, {address, segment.size, 0, segment.stream}, site);
    }
    for (const auto& [address, block] : blocks_) {
        push(Action::alloc, block, site);
    }
}

}  // namespace gpuviz::record
