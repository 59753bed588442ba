#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/host_block.hpp"
#include "allocator/settings.hpp"

namespace gpuviz::allocator {

// The free blocks of pinned host memory that can be reused. Not thread-safe.
class HostCache {
  public:
    // The size of the block that serves a request of `size` bytes.
    [[nodiscard]] static std::uint64_t rounded(std::uint64_t size, const Settings& settings);
    // Removes the newest block of at least `size` bytes among those of its class; null if there is
    // none.
    [[nodiscard]] HostBlock* take(std::uint64_t size);
    void add(HostBlock& block);
    // Removes any block; null if there is none.
    [[nodiscard]] HostBlock* take_any() noexcept;

  private:
    static constexpr std::size_t size_classes = 65;

    std::array<std::vector<HostBlock*>, size_classes> blocks_;  // by ceil(log2(size)), newest last
};

}  // namespace gpuviz::allocator
