#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpuviz::analysis {

// From `begin` up to, but without, `end`, in ns.
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

// Of a damaged file: no sum of a few times overflows, and nothing ends before it begins.
[[nodiscard]] inline Interval sound(std::int64_t begin, std::int64_t end) noexcept {
    constexpr std::int64_t limit = std::int64_t{1} << 60;
    const std::int64_t from = std::clamp(begin, -limit, limit);
    return {from, std::max(from, std::min(end, limit))};
}

// What an activity is for the measures of overlap.
enum class Work : std::uint8_t { other, kernel, copy };

// GPU work of the table `activities`, column by column, all of one length.
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

// What a CUDA call means for a GPU that has nothing to do.
enum class CallKind : std::uint8_t { other, allocation, blocking, query };

// The table `api_calls`, column by column, all of one length.
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

enum class WaitKind : std::uint8_t { record, stream_wait, host_wait };

// The table `synchronizations`, column by column, all of one length.
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
