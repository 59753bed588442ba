#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "allocator/event_queue.hpp"
#include "allocator/host_block.hpp"
#include "allocator/host_cache.hpp"
#include "allocator/host_trace.hpp"
#include "allocator/out_of_memory.hpp"
#include "allocator/settings.hpp"
#include "allocator/statistics.hpp"
#include "device/device.hpp"
#include "record/activity_log.hpp"
#include "record/address_filter.hpp"
#include "record/clock.hpp"
#include "record/fork_safe_mutex.hpp"
#include "record/pinned_uses.hpp"

namespace gpuviz::allocator {

// torch's caching allocator of pinned host memory: one cache of whole blocks for all streams and
// devices. A freed block is reused once the streams that used it have passed the free. Thread-safe.
// The devices must outlive the allocator, whose destructor returns all memory.
class HostAllocator final : public record::PinnedUses {
  public:
    using Clock = std::function<std::int64_t()>;  // in ns

    // Memory comes from `device`; others can use it too.
    HostAllocator(device::Device& device, const Settings& settings, Clock clock = record::now_ns);
    HostAllocator(const HostAllocator&) = delete;
    HostAllocator& operator=(const HostAllocator&) = delete;
    ~HostAllocator() override { release_everything(); }

    // Size 0 gives address 0. Throws HostOutOfMemory.
    [[nodiscard]] device::Address allocate(std::uint64_t size, const record::CallSite& site = {});
    // The same from the cache, without waiting; nothing if that cannot be done. Meant for callers
    // that hold the GIL.
    [[nodiscard]] std::optional<device::Address> try_allocate(std::uint64_t size,
                                                              const record::CallSite& site = {});
    // Throws std::invalid_argument for an address that is not an allocated block's.
    void free(device::Address address, const record::CallSite& site = {});

    // The same for a block that streams of a device may have used until now.
    void free_after(device::Address address, device::Device& device,
                    std::initializer_list<device::StreamHandle> streams,
                    const record::CallSite& site = {});

    // Delays the reuse of the block that contains `address` until `stream` has finished the work
    // queued before its free; a block that captured work uses is never reused. False: no allocated
    // block contains the address.
    bool record_event(device::Address address, device::Device& device, device::StreamHandle stream);
    // The same for a copy that was just enqueued, until whose end the block waits. The device must
    // be known from add_device().
    void used(int device, device::StreamHandle stream,
              std::span<const device::Address> addresses) noexcept override;
    [[nodiscard]] bool may_contain(device::Address address) const noexcept override {
        return filter_.may_contain(address);
    }
    void add_device(device::Device& device);
    // To be called before a stream is destroyed: blocks wait for its work until now.
    void end_stream(device::Device& device, device::StreamHandle stream);

    // Returns the cached blocks to the driver.
    void empty_cache(const record::CallSite& site = {});
    void apply_settings(const Settings& settings);

    // Writes rows that describe the memory that exists now, and from now on every event, until
    // stop_recording(). The log must outlive that.
    void record_into(record::ActivityLog& log);
    void stop_recording();

    [[nodiscard]] HostStatistics statistics() const;
    void reset_peak_stats();
    void reset_accumulated_stats();

  private:
    // The following require the lock.
    device::Address hand_out(HostBlock& block, std::uint64_t requested_size);
    [[nodiscard]] HostBlock& allocated_block(device::Address address);
    void begin_free(HostBlock& block);
    [[nodiscard]] HostBlock& make_block(std::uint64_t size, std::uint64_t requested_size);
    [[nodiscard]] HostBlock* try_make_block(std::uint64_t size);
    [[nodiscard]] HostBlock* block_around(device::Address address);
    [[nodiscard]] EventQueue<HostBlock>& events_of(device::Device& device);
    void use_now(HostBlock& block, device::Device& device, device::StreamHandle stream);
    void record_events(HostBlock& block);
    void process_deferred();
    void process_events();
    void synchronize_events();
    void events_passed(HostBlock* block);
    void finish_free(HostBlock& block);
    void release_block(HostBlock& block);
    void release_cached();
    void release_everything() noexcept;

    device::Device& device_;
    Clock clock_;
    record::AddressFilter filter_;

    mutable record::ForkSafeMutex mutex_{record::ForkSafeMutex::Level::allocator};
    Settings settings_;
    HostTrace trace_;  // for the call that holds the lock
    HostStatistics statistics_;
    std::map<int, device::Device*> devices_;  // by ordinal
    std::map<device::Address, HostBlock> blocks_;
    HostCache cache_;
    std::map<int, EventQueue<HostBlock>> events_;  // by the ordinal of a device
    std::vector<HostBlock*> deferred_;  // freed; an event of theirs cannot be recorded yet
};

}  // namespace gpuviz::allocator
