#pragma once

#include <cstdint>
#include <span>

namespace gpuviz::record {

// Learns which copies use pinned host memory. Called by the threads that make them, without any
// lock of a tracer.
class PinnedUses {
  public:
    virtual ~PinnedUses() = default;

    // Whether the address may lie in pinned memory; one load.
    [[nodiscard]] virtual bool may_contain(std::uint64_t address) const noexcept = 0;
    // A call has given `stream` a copy from or to these addresses.
    virtual void used(int device, std::uint64_t stream,
                      std::span<const std::uint64_t> addresses) noexcept = 0;
};

}  // namespace gpuviz::record
