#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpuviz::replay {

// Columns of the table `memory_events`, of equal length; only rows of `device_id` count.
struct RecordedEvents {
    std::span<const std::int64_t> time;
    std::span<const std::int8_t> action;
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> requested_size;
    std::span<const std::int16_t> device;
    std::span<const std::uint32_t> stream;
    std::span<const std::uint32_t> pool;
    std::span<const std::uint32_t> stack;
    std::span<const std::uint32_t> thread;
    std::span<const std::uint32_t> range;
    std::span<const std::int8_t> framework;
    std::int16_t device_id = 0;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

}  // namespace gpuviz::replay
