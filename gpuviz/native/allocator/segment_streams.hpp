#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "device/device.hpp"

namespace gpuviz::allocator {

// The streams that own the memory of an allocator. Not thread-safe but for is_only().
class SegmentStreams {
  public:
    void add(device::Address address, std::uint64_t size, device::StreamHandle stream);
    void remove(device::Address address);

    // The stream that owns the memory at the address; nothing if no segment contains it.
    [[nodiscard]] std::optional<device::StreamHandle> owner_of(device::Address address) const;
    // Whether the stream owns all segments.
    [[nodiscard]] bool is_only(device::StreamHandle stream) const noexcept {
        return stream == only_.load(std::memory_order_relaxed);
    }

  private:
    struct Segment {
        device::Address end;
        device::StreamHandle stream;
    };
    static constexpr device::StreamHandle no_stream =
        std::numeric_limits<device::StreamHandle>::max();

    void update_only();

    std::map<device::Address, Segment> segments_;
    std::atomic<device::StreamHandle> only_{no_stream};
};

}  // namespace gpuviz::allocator
