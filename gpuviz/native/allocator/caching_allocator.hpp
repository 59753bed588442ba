#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "allocator/address_map.hpp"
#include "allocator/allocator.hpp"
#include "allocator/block.hpp"
#include "allocator/block_pool.hpp"
#include "allocator/delayed_frees.hpp"
#include "allocator/event_queue.hpp"
#include "allocator/expandable_segment.hpp"
#include "allocator/out_of_memory.hpp"
#include "allocator/poison.hpp"
#include "allocator/settings.hpp"
#include "allocator/snapshot.hpp"
#include "allocator/statistics.hpp"
#include "allocator/use_tracker.hpp"
#include "device/device.hpp"
#include "record/fork_safe_mutex.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::allocator {

enum class UseTracking : std::uint8_t { off, report, delay };

struct BlockDetails {
    device::Address address;
    std::uint64_t size;
    std::uint64_t requested_size;
    device::StreamHandle stream;
    std::uint64_t pool;  // the n of the pool's id (0, n)
    std::uint32_t stack;
};

// torch's CUDA caching allocator for one device. Thread-safe: one mutex serializes all calls, also
// those of the device. The device must outlive the allocator, whose destructor returns all
// segments.
class CachingAllocator final : public Allocator {
  public:
    CachingAllocator(device::Device& device, const Settings& settings);
    ~CachingAllocator() override { release_everything(); }

    // An address from the cache; nothing on a miss, or if another thread holds the allocator. Never
    // waits; its only calls of the device are queries of events.
    [[nodiscard]] std::optional<device::Address> try_allocate(std::uint64_t size,
                                                              device::StreamHandle stream,
                                                              const record::CallSite& site);
    // The whole retry ladder. Size 0 gives address 0. `already_searched`: try_allocate() missed.
    // Throws OutOfMemory, or DeviceError when a driver call failed for another reason.
    [[nodiscard]] device::Address allocate(std::uint64_t size, device::StreamHandle stream,
                                           const record::CallSite& site,
                                           bool already_searched = false) override;
    // Both callbacks run without the lock and must not allocate; they return whether something was
    // freed, so that the request is retried. Null removes them. The first runs whenever the cache
    // has no block for allocate(), as torch's; the second as the last resort before a request
    // fails.
    void set_free_memory_callback(std::function<bool()> callback);
    void set_last_resort(std::function<bool()> callback);
    // False: another thread holds the allocator and nothing was done.
    // All throw std::invalid_argument for an address that is not an allocated block's.
    [[nodiscard]] bool try_free(device::Address address, const record::CallSite& site);
    // The same for memory that was used until now on `last`; false also if that is not the stream
    // of the allocation.
    [[nodiscard]] bool try_free_after(device::Address address, device::StreamHandle last,
                                      const record::CallSite& site);
    void free(device::Address address, const record::CallSite& site) override;

    // Delays the reuse of the block until `stream` has finished the work queued before its free.
    void record_stream(device::Address address, device::StreamHandle stream,
                       const record::CallSite& site) override;
    // The same, without an event.
    void add_stream_use(device::Address address, device::StreamHandle stream) override;
    // Delays the reuse of freed blocks until the work of other streams that used them is done, as
    // the calls that the result receives show, or only counts what this would delay. With
    // `poison`, fills freed blocks and looks for later writes. The result lives as long as the
    // allocator. `clock` is in ns, and has the same rate as the device.
    record::StreamCalls& track_uses(UseTracking tracking, bool poison,
                                    DelayedFreeCounts::Clock clock);
    // Ends this. Blocks that other streams have used until now still wait for these uses.
    std::vector<DelayedFrees> stop_tracking_uses();
    // Since track_uses().
    [[nodiscard]] std::vector<DelayedFrees> delayed_frees() const;
    [[nodiscard]] std::uint64_t untracked_uses() const;
    [[nodiscard]] std::vector<WriteAfterFree> writes_after_free();
    // Blocks that poison could not fill or check.
    [[nodiscard]] std::uint64_t unchecked_frees() const;
    // Holds freed blocks back until they have this many bytes in all, or memory runs out.
    void set_quarantine(std::uint64_t bytes, const record::CallSite& site = {});
    void empty_cache(const record::CallSite& site) override;

    // Private pools, by the n of their id (0, n). All throw std::invalid_argument for a pool that
    // does not exist or is in the wrong state.
    [[nodiscard]] std::uint64_t create_pool(bool use_on_oom = false,
                                            bool no_split = false) override;
    void begin_pool(std::uint64_t pool, PoolFilter filter) override;
    void end_pool(std::uint64_t pool) override;
    // Returns the pool's memory to the device as its blocks become free.
    void release_pool(std::uint64_t pool, const record::CallSite& site) override;

    // What is allocated now, except in one private pool, stays so despite its free until nothing
    // holds it. Returns the number of this hold, from 1. The next ones throw std::invalid_argument
    // if there is none of this number.
    [[nodiscard]] std::uint64_t hold_allocated(std::uint64_t except_pool);
    // Of all that was or is allocated since then, holds the blocks that contain one of the
    // addresses, and no others.
    void keep_used(std::uint64_t hold, std::vector<device::Address> used,
                   const record::CallSite& site);
    void release_hold(std::uint64_t hold, const record::CallSite& site);
    [[nodiscard]] std::uint64_t held_bytes(std::uint64_t hold);

    // Limits the reserved bytes; 1 removes the limit. Throws std::invalid_argument outside [0, 1].
    void set_memory_fraction(double fraction, const record::CallSite& site = {});
    // The same in bytes; at least the device's memory removes the limit.
    void set_memory_limit(std::uint64_t bytes, const record::CallSite& site = {}) override;
    [[nodiscard]] double memory_fraction() const;
    void apply_settings(const Settings& settings) override;
    [[nodiscard]] Settings settings() const override;
    // Sets torch's id of a stream, which determines the order of completed frees.
    void identify_stream(device::StreamHandle stream, std::uint64_t id);

    [[nodiscard]] Statistics statistics() const override;
    void reset_peak_stats();
    void reset_accumulated_stats();
    [[nodiscard]] Snapshot snapshot();
    // The bytes that empty_cache() would release now, with the frees for which it waits.
    [[nodiscard]] std::uint64_t releasable_bytes();
    [[nodiscard]] bool owns(device::Address address) const;
    [[nodiscard]] std::optional<BlockDetails> block_at(device::Address address) const;

    // Sends events to `sink`, which must outlive its use; null ends this.
    void set_event_sink(record::MemoryEventSink* sink) override;
    // Sends events to `relay` first, which passes them on to the sink, until the destruction.
    void set_relay(std::unique_ptr<record::MemoryEventRelay> relay);
    // Pushes events that recreate the current state, so that a recording can start at any time.
    void describe_state(record::MemoryEventSink& sink, bool stacks_are_valid);
    // Recreates a state: a segment of the default pool (0) or of a private one, and then its
    // blocks, each after a free gap. They return 0 if the device or the segment has no room.
    device::Address restore_segment(std::uint64_t size, device::StreamHandle stream,
                                    std::uint64_t pool, bool is_small,
                                    const record::CallSite& site) override;
    // The same for pages of an expandable segment; a new one begins where the device places it.
    device::Address restore_pages(device::Address address, std::uint64_t size,
                                  device::StreamHandle stream, std::uint64_t pool, bool is_small,
                                  const record::CallSite& site) override;
    device::Address restore_block(std::uint64_t gap, std::uint64_t size,
                                  std::uint64_t requested_size,
                                  const record::CallSite& site) override;

    [[nodiscard]] device::Device& device() const noexcept { return device_; }

  private:
    using Uses = std::vector<std::shared_ptr<LastUse>>;
    using PrivatePools = std::map<std::uint64_t, std::unique_ptr<PrivatePool>>;  // by number

    struct Request {
        std::uint64_t requested_size;
        std::uint64_t size;  // rounded
        device::StreamHandle stream;
        BlockPool* pool;
    };
    struct Hold {
        std::uint64_t except_pool;
        std::vector<Block*> blocks;  // by address
    };
    struct PoolScope {
        std::uint64_t pool;
        std::thread::id thread;
        PoolFilter filter;
    };

    // caching_allocator.cpp
    [[nodiscard]] Request make_request(std::uint64_t size, device::StreamHandle stream);
    [[nodiscard]] BlockPool& choose_pool(std::uint64_t size);
    [[nodiscard]] Block* find_or_make_block_again(const Request& request,
                                                  const record::CallSite& site);
    void limit_memory(std::optional<std::uint64_t> bytes, const record::CallSite& site);
    [[nodiscard]] record::MemoryEvent limit_event(const record::CallSite& site);
    [[nodiscard]] static bool freed_elsewhere(std::function<bool()> callback,
                                              std::unique_lock<record::ForkSafeMutex>& lock);
    [[nodiscard]] Block* block_of(device::Address address) const;
    void release_block_to_cache(device::Address address, const record::CallSite& site);
    void trace(record::Action action, const Block& block, std::uint64_t size,
               std::uint64_t requested_size, const record::CallSite& site) const {
        if (sink_ != nullptr) {
            sink_->push(event_of(action, block, size, requested_size, site));
        }
    }
    [[nodiscard]] record::MemoryEvent event_of(record::Action action, const Block& block,
                                               std::uint64_t size, std::uint64_t requested_size,
                                               const record::CallSite& site) const;

    // best_fit.cpp
    [[nodiscard]] Block* take_free_block(const Request& request, bool count_search);
    [[nodiscard]] bool should_split(const Block& block, const Request& request) const;
    Block* split(Block* block, std::uint64_t size);
    device::Address hand_out(Block* block, const Request& request, const record::CallSite& site);
    device::Address give(Block* block, std::uint64_t requested_size, const record::CallSite& site);
    void complete_free(Block* block, const record::CallSite& site);
    void free_block(Block* block);
    std::uint64_t merge(Block* block, Block* neighbour);

    // pending_frees.cpp
    void add_use(Block* block, device::StreamHandle stream);
    [[nodiscard]] bool frees_wait() const noexcept { return open_captures_ > 0; }
    void process_events(device::StreamHandle stream, const record::CallSite& site) {
        if (!events_.empty() || !deferred_.empty() || delayed_.is_imagining() ||
            (poison_ != nullptr && poison_->is_comparing())) {
            complete_events(stream, site);
        }
    }
    void complete_events(device::StreamHandle stream, const record::CallSite& site);
    void trace_use(const Block& block, device::StreamHandle stream,
                   const record::CallSite& site) const;
    [[nodiscard]] Uses take_uses(const Block& block, const record::CallSite& site);
    void wait_for_uses(Block* block, Uses uses);
    void finish_free(Block* block, const record::CallSite& site);
    void hold_back(Block* block, const record::CallSite& site);
    void shrink_quarantine(std::uint64_t bytes, const record::CallSite& site);
    void events_passed(Block* block, const record::CallSite& site);
    void wait_for_streams(Block* block);
    void insert_deferred_events(const record::CallSite& site);
    void synchronize_events(const PrivatePool* pool, const record::CallSite& site);

    // retry_ladder.cpp
    [[nodiscard]] Block* find_or_make_block(const Request& request, const record::CallSite& site);
    [[nodiscard]] Block* take_from_pools_used_on_oom(const Request& request);
    [[nodiscard]] bool release_oversize_blocks(const Request& request,
                                               const record::CallSite& site);
    void release_cached_blocks(const record::CallSite& site);
    [[nodiscard]] bool is_released_when_emptied(const Block& block) const noexcept;
    void release_unused_pools(const record::CallSite& site);
    PrivatePools::iterator release_unused_pool(PrivatePools::iterator entry,
                                               const record::CallSite& site);
    void release_blocks(BlockPool& pool, const record::CallSite& site);
    [[nodiscard]] OutOfMemory out_of_memory(const Request& request, const record::CallSite& site);

    // garbage_collection.cpp
    [[nodiscard]] bool collects_garbage() const noexcept {
        return limit_ && settings_.garbage_collection_threshold > 0;
    }
    void collect_garbage(const record::CallSite& site);

    // segment.cpp
    [[nodiscard]] Block* make_segment(const Request& request, bool is_retry,
                                      const record::CallSite& site);
    [[nodiscard]] Block* add_segment(BlockPool& pool, std::uint64_t size,
                                     device::StreamHandle stream, const record::CallSite& site);
    void release_segment(Block* block, const record::CallSite& site);
    [[nodiscard]] Block* grow_expandable_segment(const Request& request,
                                                 const record::CallSite& site);
    [[nodiscard]] Block* find_growable_block(const Request& request);
    [[nodiscard]] Block* add_expandable_segment(BlockPool& pool, device::StreamHandle stream);
    Block* split_unmapped(Block* block, std::uint64_t size);
    [[nodiscard]] bool map_block(Block* block, std::uint64_t size, const record::CallSite& site);
    void unmap_block(Block* block, const record::CallSite& site);
    void add_free_piece(Block* block, AddressRange range, Block* previous, Block* next);
    void release_expandable_segment(Block* block);
    void release_everything() noexcept;
    void add_reserved(const BlockPool& pool, std::uint64_t size);
    void subtract_reserved(const BlockPool& pool, std::uint64_t size);

    // held_blocks.cpp
    void free_later(Block* block);
    [[nodiscard]] Hold& hold_at(std::uint64_t number);
    void let_go(const std::vector<Block*>& blocks, const record::CallSite& site);
    [[nodiscard]] static bool is_in_pool(const Block& block, std::uint64_t pool) noexcept {
        const PrivatePool* const owner = block.pool->owner;
        return owner != nullptr && owner->number == pool;
    }

    // private_pool.cpp
    [[nodiscard]] PrivatePool& pool_at(std::uint64_t pool);
    [[nodiscard]] BlockPool& pool_of(std::uint64_t pool, bool is_small);

    device::Device& device_;
    std::uint16_t ordinal_;
    Settings settings_;
    bool expandable_ = false;             // enabled, and supported by the device
    std::optional<std::uint64_t> limit_;  // of reserved bytes, from the memory fraction
    std::uint64_t reserved_ = 0;

    mutable record::ForkSafeMutex mutex_{record::ForkSafeMutex::Level::allocator};
    BlockArena arena_;
    AddressMap allocated_;
    std::unique_ptr<UseTracker> tracker_;  // null until the first track_uses()
    UseTracking tracking_ = UseTracking::off;
    DelayedFreeCounts delayed_;
    void* samples_ = nullptr;                        // of Poison
    std::unique_ptr<Poison> poison_;                 // null: off
    std::vector<WriteAfterFree> writes_after_free_;  // of the last poison
    std::uint64_t unchecked_frees_ = 0;
    std::deque<Block*> quarantine_;  // freed and held back, oldest first
    std::uint64_t quarantined_ = 0;  // bytes
    std::uint64_t most_quarantined_ = 0;
    BlockPool small_{true};
    BlockPool large_{false};
    std::list<ExpandableSegment> expandable_segments_;
    PrivatePools private_pools_;
    std::uint64_t last_pool_ = 0;
    std::vector<PoolScope> scopes_;
    std::map<std::uint64_t, Hold> holds_;  // by number
    std::uint64_t last_hold_ = 0;
    int open_captures_ = 0;  // scopes with PoolFilter::everything
    EventQueue<Block> events_;
    std::vector<Block*> deferred_;  // freed; their events are recorded when no capture is open
    Statistics statistics_;
    std::function<bool()> free_memory_callback_;
    std::function<bool()> last_resort_;
    std::unique_ptr<record::MemoryEventRelay> relay_;
    record::MemoryEventSink* sink_ = nullptr;  // the relay if there is one
    Block* restored_ = nullptr;                // the free end of the segment that is being restored
};

}  // namespace gpuviz::allocator
