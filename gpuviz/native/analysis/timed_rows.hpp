#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "analysis/codes.hpp"

namespace gpuviz::analysis {

// The half-open interval [begin, end), in ns.
struct Interval {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    [[nodiscard]] std::int64_t length() const noexcept {
        return std::max<std::int64_t>(0, end - begin);
    }
    [[nodiscard]] Interval within(Interval other) const noexcept {
        return {std::max(begin, other.begin), std::min(end, other.end)};
    }
};

// Clips times of a damaged file, so that sums of a few times do not overflow and no interval ends
// before it begins.
[[nodiscard]] inline Interval sound(std::int64_t begin, std::int64_t end) noexcept {
    constexpr std::int64_t limit = std::int64_t{1} << 60;
    const std::int64_t from = std::clamp(begin, -limit, limit);
    return {from, std::max(from, std::min(end, limit))};
}

// Columns of the table `activities`, of equal length.
struct ActivityRows {
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;
    std::span<const std::uint8_t> work;
    std::span<const std::int16_t> device;
    std::span<const std::uint32_t> stream;
    std::span<const std::uint32_t> correlation;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
    [[nodiscard]] Interval interval(std::size_t row) const noexcept {
        return sound(time[row], end[row]);
    }
};

// Columns of the table `api_calls`, of equal length.
struct HostCallRows {
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;
    std::span<const std::uint8_t> kind;
    std::span<const std::uint32_t> thread;
    std::span<const std::uint32_t> correlation;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
    [[nodiscard]] Interval interval(std::size_t row) const noexcept {
        return sound(time[row], end[row]);
    }
};

// Columns of the table `synchronizations`, of equal length.
struct SynchronizationRows {
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;
    std::span<const std::uint8_t> kind;
    std::span<const std::uint32_t> stream;
    std::span<const std::uint64_t> event_sync_id;
    std::span<const std::uint32_t> correlation;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

}  // namespace gpuviz::analysis
