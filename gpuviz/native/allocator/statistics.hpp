#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpuviz::allocator {

// Updated at every allocation and free, so derived values are not stored.
struct Counter {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;
    std::int64_t held_at_reset = 0;  // `current` when `allocated` was last 0

    [[nodiscard]] std::int64_t freed() const noexcept {
        return held_at_reset + allocated - current;
    }

    void increase(std::int64_t amount) noexcept {
        current += amount;
        peak = std::max(peak, current);
        allocated += amount;
    }
    void decrease(std::int64_t amount) noexcept { current -= amount; }
    void reset_peak() noexcept { peak = current; }
    void reset_accumulated() noexcept {
        allocated = 0;
        held_at_reset = current;
    }
};

// One counter for each kind of pool. Of both together only the peak is stored, because the pools
// may reach theirs at different times.
struct PoolCounters {
    Counter large_pool;
    Counter small_pool;
    std::int64_t peak = 0;

    [[nodiscard]] std::int64_t current() const noexcept {
        return large_pool.current + small_pool.current;
    }
    [[nodiscard]] Counter all() const noexcept {
        return {.current = current(),
                .peak = peak,
                .allocated = large_pool.allocated + small_pool.allocated,
                .held_at_reset = large_pool.held_at_reset + small_pool.held_at_reset};
    }

    void increase(bool small, std::uint64_t amount) noexcept {
        of(small).increase(static_cast<std::int64_t>(amount));
        peak = std::max(peak, current());
    }
    void decrease(bool small, std::uint64_t amount) noexcept {
        of(small).decrease(static_cast<std::int64_t>(amount));
    }
    void change(bool small, std::int64_t amount) noexcept {
        if (amount > 0) {
            increase(small, static_cast<std::uint64_t>(amount));
        } else if (amount < 0) {
            decrease(small, static_cast<std::uint64_t>(-amount));
        }
    }
    void reset_peak() noexcept {
        large_pool.reset_peak();
        small_pool.reset_peak();
        peak = current();
    }
    void reset_accumulated() noexcept {
        large_pool.reset_accumulated();
        small_pool.reset_accumulated();
    }

  private:
    [[nodiscard]] Counter& of(bool small) noexcept { return small ? small_pool : large_pool; }
};

// The statistics of torch.cuda.memory_stats, under the same names.
struct Statistics {
    PoolCounters allocation;
    PoolCounters segment;
    PoolCounters active;
    PoolCounters inactive_split;
    PoolCounters allocated_bytes;
    PoolCounters reserved_bytes;
    PoolCounters active_bytes;
    PoolCounters inactive_split_bytes;
    PoolCounters requested_bytes;
    Counter oversize_allocations;
    Counter oversize_segments;
    std::int64_t num_alloc_retries = 0;
    std::int64_t num_ooms = 0;
    std::int64_t num_sync_all_streams = 0;
    std::int64_t num_device_alloc = 0;
    std::int64_t num_device_free = 0;
    std::int64_t max_split_size = -1;  // -1: unlimited

    void reset_peak() noexcept;
    void reset_accumulated() noexcept;

    // All values by their key in torch.cuda.memory_stats, sorted by key.
    [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> flattened() const;
};

// How long calls of the driver took, in microseconds.
struct CallTimes {
    std::int64_t total = 0;
    std::int64_t max = 0;
    std::int64_t min = 0;  // 0: no call
    std::int64_t count = 0;

    [[nodiscard]] std::int64_t average() const noexcept { return count == 0 ? 0 : total / count; }

    void add_ns(std::int64_t ns) noexcept {
        constexpr std::int64_t ns_per_microsecond = 1000;
        const std::int64_t time = ns / ns_per_microsecond;
        total += time;
        max = std::max(max, time);
        min = min == 0 ? time : std::min(min, time);
        count += 1;
    }
    void reset_peak() noexcept { max = min = 0; }
    void reset_accumulated() noexcept { total = count = 0; }
};

// The statistics of torch.cuda.host_memory_stats, under the same names.
struct HostStatistics {
    Counter allocations;      // blocks from the driver, in use or cached
    Counter allocated_bytes;  // of these
    Counter active_requests;  // blocks handed out, until the streams that use them have finished
    Counter active_bytes;     // of these
    CallTimes host_alloc_time;
    CallTimes host_free_time;
    std::int64_t num_host_alloc = 0;
    std::int64_t num_host_free = 0;

    void reset_peak() noexcept;
    void reset_accumulated() noexcept;

    // All values by their key in torch.cuda.host_memory_stats, sorted by key.
    [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> flattened() const;
};

}  // namespace gpuviz::allocator
