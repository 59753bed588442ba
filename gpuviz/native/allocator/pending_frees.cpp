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
    if (sink_ != nullptr) {
        Block use{};
        use.address = block->address;
        use.stream = stream;
        use.pool = block->pool;
        sink_->push(
            event_of(record::Action::record_stream, use, block->size, block->requested_size, site));
    }
    add_use(block, stream);
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
            complete_free(block, site);
        }
    }
}

void CachingAllocator::complete_events(StreamHandle stream, const CallSite& site) {
    if (frees_wait() || device_.is_capturing(stream)) {
        return;
    }
    insert_deferred_events(site);
    events_.reap([&](Block* block) { complete_free(block, site); });
}

void CachingAllocator::synchronize_events(const PrivatePool* pool, const CallSite& site) {
    statistics_.num_sync_all_streams += 1;
    insert_deferred_events(site);
    events_.synchronize(
        [pool](const Block* block) { return pool == nullptr || block->pool->owner == pool; },
        [&](Block* block) { complete_free(block, site); });
}

}  // namespace gpuviz::allocator
