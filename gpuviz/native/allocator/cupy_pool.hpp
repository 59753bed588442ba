#pragma once

#include <cstdint>
#include <optional>

#include "allocator/address_map.hpp"
#include "allocator/allocator.hpp"
#include "allocator/block.hpp"
#include "allocator/block_pool.hpp"

namespace gpuviz::allocator {

// cupy.cuda.MemoryPool for one device, for replays: best fit among the free blocks of a stream,
// every block is split, and a new segment has exactly the size of its request. Of several free
// blocks of the same size, CuPy takes any; this pool takes the one with the lowest address.
// Not thread-safe. The device must outlive the pool.
class CupyPool final : public Allocator {
  public:
    explicit CupyPool(device::Device& device) : device_(device) {}

    // Throws OutOfMemory. Size 0 gives address 0. At the pool's limit a request fails at once; at
    // the device's, unused segments are released first.
    [[nodiscard]] device::Address allocate(std::uint64_t size, device::StreamHandle stream,
                                           const record::CallSite& site,
                                           bool already_searched = false) override;
    // Throws std::invalid_argument for an address that is not an allocated block's.
    void free(device::Address address, const record::CallSite& site) override;
    void empty_cache(const record::CallSite& site) override;
    void set_memory_limit(std::uint64_t bytes, const record::CallSite& site = {}) override;
    [[nodiscard]] Statistics statistics() const override { return statistics_; }
    void set_event_sink(record::MemoryEventSink* sink) override { sink_ = sink; }

  private:
    [[nodiscard]] Block* take_free_block(std::uint64_t size, device::StreamHandle stream);
    [[nodiscard]] Block* make_segment(std::uint64_t size, device::StreamHandle stream,
                                      const record::CallSite& site);
    [[noreturn]] void fail(std::uint64_t requested_size, std::uint64_t size,
                           device::StreamHandle stream, const record::CallSite& site);
    std::uint64_t release_segments(const record::CallSite& site);
    void insert(Block* block);
    void remove(Block* block);
    // Joins a block with the one after it, which ends.
    void join_with_next(Block* block);
    void trace(record::Action action, const Block& block, std::uint64_t size,
               std::uint64_t requested_size, const record::CallSite& site,
               bool completed = false) const;

    device::Device& device_;
    BlockArena arena_;
    AddressMap allocated_;
    BlockPool pool_{true};
    std::optional<std::uint64_t> limit_;  // of reserved bytes
    std::uint64_t reserved_ = 0;
    Statistics statistics_;
    record::MemoryEventSink* sink_ = nullptr;
};

}  // namespace gpuviz::allocator
