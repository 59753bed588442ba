#include <memory>
#include <utility>

#include <algorithm>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

using device::StreamHandle;
using record::CallSite;

void CachingAllocator::record_stream(device::Address address, StreamHandle stream,
                                     const CallSite& site) {
    const std::lock_guard lock(mutex_);
    Block* block = block_of(address);
    trace_use(*block, stream, site);
    add_use(block, stream);
}

void CachingAllocator::trace_use(const Block& block, StreamHandle stream,
                                 const CallSite& site) const {
    Block use{};
    use.address = block.address;
    use.stream = stream;
    use.pool = block.pool;
    trace(record::Action::record_stream, use, block.size, block.requested_size, site);
}

void CachingAllocator::add_stream_use(device::Address address, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    add_use(block_of(address), stream);
}

void CachingAllocator::add_use(Block* block, StreamHandle stream) {
    if (stream == block->stream) {
        return;
    }
    if (block->stream_uses == nullptr) {
        block->stream_uses = std::make_unique<StreamUses>();
    }
    const auto add = [stream](std::vector<StreamHandle>& streams) {
        if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
            streams.push_back(stream);
        }
    };
    add(block->stream_uses->streams);
    if (frees_wait()) {
        add(block->stream_uses->recorded_in_pool);
    }
}

record::StreamCalls& CachingAllocator::track_uses(UseTracking tracking, bool poison,
                                                  DelayedFreeCounts::Clock clock) {
    const std::lock_guard lock(mutex_);
    if (tracker_ == nullptr) {
        tracker_ = std::make_unique<UseTracker>(device_);
        arena_.for_each([this](const Block& first) {
            if (first.previous != nullptr) {
                return;
            }
            std::uint64_t size = 0;
            for (const Block* block = &first; block != nullptr; block = block->next) {
                size += block->size;
            }
            tracker_->add_segment(first.address, size, first.stream);
        });
    }
    tracking_ = tracking;
    delayed_.begin(std::move(clock));
    tracker_->begin(tracking != UseTracking::off, poison);
    if (poison && samples_ == nullptr) {
        samples_ = device_.host_memory(Poison::buffer_bytes);
    }
    poison_ = poison ? std::make_unique<Poison>(device_, *tracker_, samples_) : nullptr;
    return *tracker_;
}

std::vector<DelayedFrees> CachingAllocator::stop_tracking_uses() {
    const std::lock_guard lock(mutex_);
    if (tracker_ == nullptr) {
        return {};
    }
    tracker_->finish();
    if (tracking_ != UseTracking::delay) {
        tracker_->forget_uses();
    }
    if (poison_ != nullptr) {
        poison_->compare(true);
        writes_after_free_ = poison_->found();
        unchecked_frees_ = poison_->skipped();
        poison_ = nullptr;
    }
    try {
        delayed_.poll(device_);
    } catch (const device::DeviceError&) {
        // The device has failed; what is not known to have ended, ends now.
    }
    delayed_.end();
    return delayed_.rows();
}

std::vector<DelayedFrees> CachingAllocator::delayed_frees() const {
    const std::lock_guard lock(mutex_);
    return delayed_.rows();
}

std::uint64_t CachingAllocator::untracked_uses() const {
    const std::lock_guard lock(mutex_);
    return tracker_ == nullptr ? 0 : tracker_->failures();
}

// The uses that a block which is being freed has to wait for.
CachingAllocator::Uses CachingAllocator::take_uses(const Block& block, const CallSite& site) {
    Uses uses = tracker_->take(block.address, block.size, block.stream);
    if (uses.empty()) {
        return uses;
    }
    if (tracking_ != UseTracking::delay) {
        delayed_.imagine(block, std::move(uses), site.stack);
        return {};
    }
    delayed_.hold(block, uses, site.stack);
    for (const std::shared_ptr<LastUse>& use : uses) {
        trace_use(block, use->stream, {use->stack, site.thread, site.range});
    }
    return uses;
}

void CachingAllocator::wait_for_uses(Block* block, Uses uses) {
    block->pending = true;
    for (std::shared_ptr<LastUse>& use : uses) {
        events_.wait_for(block, std::move(use));
    }
}

void CachingAllocator::wait_for_streams(Block* block) {
    block->pending = true;
    const std::vector<StreamHandle>& streams = block->stream_uses->streams;
    const bool capturing = std::any_of(streams.begin(), streams.end(), [this](StreamHandle stream) {
        return device_.is_capturing(stream);
    });
    if (frees_wait() || capturing) {
        deferred_.push_back(block);
        return;
    }
    const std::unique_ptr<StreamUses> uses = std::move(block->stream_uses);
    for (const StreamHandle stream : events_.in_slot_order(uses->streams)) {
        events_.record(block, stream);
    }
}

void CachingAllocator::insert_deferred_events(const CallSite& site) {
    for (Block* block : std::exchange(deferred_, {})) {
        StreamUses& uses = *block->stream_uses;
        uses.streams = events_.in_slot_order(uses.streams);
        std::erase_if(uses.streams, [&](StreamHandle stream) {
            const auto& dropped = uses.recorded_in_pool;
            return std::find(dropped.begin(), dropped.end(), stream) != dropped.end();
        });
        wait_for_streams(block);
        if (block->event_count == 0 && block->stream_uses == nullptr) {
            finish_free(block, site);
        }
    }
}

void CachingAllocator::complete_events(StreamHandle stream, const CallSite& site) {
    if (frees_wait() || device_.is_capturing(stream)) {
        return;
    }
    insert_deferred_events(site);
    if (events_.has_unrecorded()) {
        tracker_->record_missing();
    }
    if (delayed_.is_imagining()) {
        delayed_.poll(device_);
    }
    if (poison_ != nullptr) {
        poison_->compare();
    }
    events_.reap([&](Block* block) { events_passed(block, site); });
}

void CachingAllocator::events_passed(Block* block, const CallSite& site) {
    const bool is_deferred = block->stream_uses != nullptr;
    if (!is_deferred) {
        finish_free(block, site);
    }
}

// No stream uses the block any more.
void CachingAllocator::finish_free(Block* block, const CallSite& site) {
    if (poison_ != nullptr) {
        poison_->fill(*block, block->freed_stack);
    }
    if (most_quarantined_ == 0) {
        complete_free(block, site);
    } else {
        hold_back(block, site);
    }
}

void CachingAllocator::hold_back(Block* block, const CallSite& site) {
    block->pending = true;
    quarantine_.push_back(block);
    quarantined_ += block->size;
    shrink_quarantine(most_quarantined_, site);
}

void CachingAllocator::shrink_quarantine(std::uint64_t bytes, const CallSite& site) {
    while (quarantined_ > bytes) {
        Block* const oldest = quarantine_.front();
        quarantine_.pop_front();
        quarantined_ -= oldest->size;
        complete_free(oldest, site);
    }
}

void CachingAllocator::set_quarantine(std::uint64_t bytes, const CallSite& site) {
    const std::lock_guard lock(mutex_);
    most_quarantined_ = bytes;
    shrink_quarantine(bytes, site);
}

std::vector<WriteAfterFree> CachingAllocator::writes_after_free() {
    const std::lock_guard lock(mutex_);
    if (poison_ == nullptr) {
        return writes_after_free_;
    }
    poison_->compare();
    return poison_->found();
}

std::uint64_t CachingAllocator::unchecked_frees() const {
    const std::lock_guard lock(mutex_);
    return poison_ == nullptr ? unchecked_frees_ : poison_->skipped();
}

void CachingAllocator::synchronize_events(const PrivatePool* pool, const CallSite& site) {
    statistics_.num_sync_all_streams += 1;
    insert_deferred_events(site);
    if (events_.has_unrecorded()) {
        tracker_->record_missing();
    }
    events_.synchronize(
        [pool](const Block* block) { return pool == nullptr || block->pool->owner == pool; },
        [&](Block* block) { events_passed(block, site); });
}

}  // namespace gpuviz::allocator
