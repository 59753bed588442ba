#pragma once

#include <cstdint>

#include "allocator/settings.hpp"
#include "allocator/statistics.hpp"
#include "device/device.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::allocator {

// The allocations that a pool serves between begin_pool() and end_pool().
enum class PoolFilter : std::uint8_t {
    this_thread,  // those of the calling thread; nothing else changes
    // All, as in a use_mem_pool block of torch 2.11: until the end no event is processed, frees of
    // blocks used by other streams wait, and neither empty_cache nor a retry releases the cache.
    everything,
};

// What a replay asks of an allocator; CachingAllocator states the contracts. An allocator without
// private pools, stream uses, settings or restored states ignores them.
class Allocator {
  public:
    Allocator() = default;
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;
    virtual ~Allocator() = default;

    [[nodiscard]] virtual device::Address allocate(std::uint64_t size, device::StreamHandle stream,
                                                   const record::CallSite& site,
                                                   bool already_searched = false) = 0;
    virtual void free(device::Address address, const record::CallSite& site) = 0;
    virtual void empty_cache(const record::CallSite& site) = 0;
    virtual void set_memory_limit(std::uint64_t bytes, const record::CallSite& site = {}) = 0;
    [[nodiscard]] virtual Statistics statistics() const = 0;
    virtual void set_event_sink(record::MemoryEventSink* sink) = 0;

    virtual void record_stream(device::Address, device::StreamHandle, const record::CallSite&) {}
    virtual void add_stream_use(device::Address, device::StreamHandle) {}
    [[nodiscard]] virtual std::uint64_t create_pool(bool = false, bool = false) { return 0; }
    virtual void begin_pool(std::uint64_t, PoolFilter) {}
    virtual void end_pool(std::uint64_t) {}
    virtual void release_pool(std::uint64_t, const record::CallSite&) {}
    virtual void apply_settings(const Settings&) {}
    [[nodiscard]] virtual Settings settings() const { return {}; }
    virtual device::Address restore_segment(std::uint64_t, device::StreamHandle, std::uint64_t,
                                            bool, const record::CallSite&) {
        return 0;
    }
    virtual device::Address restore_pages(device::Address, std::uint64_t, device::StreamHandle,
                                          std::uint64_t, bool, const record::CallSite&) {
        return 0;
    }
    virtual device::Address restore_block(std::uint64_t, std::uint64_t, std::uint64_t,
                                          const record::CallSite&) {
        return 0;
    }
};

}  // namespace gpuviz::allocator
