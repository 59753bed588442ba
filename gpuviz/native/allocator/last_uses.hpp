#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "allocator/last_use.hpp"
#include "device/device.hpp"

namespace gpuviz::allocator {

// The last use of memory by each stream, by address. Not thread-safe but for is_empty().
class LastUses {
  public:
    using Uses = std::vector<std::shared_ptr<LastUse>>;

    [[nodiscard]] bool is_empty() const noexcept {
        return count_.load(std::memory_order_relaxed) == 0;
    }
    void add(device::Address address, const std::shared_ptr<LastUse>& use);
    // Removes the uses of the memory; returns the newest of each stream.
    [[nodiscard]] Uses take(device::Address address, std::uint64_t size);
    void clear();

    // Whether there are so many that the complete ones should be dropped.
    [[nodiscard]] bool has_many() const noexcept { return uses_.size() > most_; }
    // Bounds the memory of programs that use many addresses of few blocks.
    void drop_complete(device::Device& device);

  private:
    void update_count() noexcept;

    std::map<device::Address, Uses> uses_;  // by the start of the smallest block around the address
    std::size_t most_ = 1024;               // before complete ones are dropped
    std::atomic<std::size_t> count_{0};
};

}  // namespace gpuviz::allocator
