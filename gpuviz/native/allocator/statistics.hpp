#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpuviz {

struct Counter {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;
    std::int64_t freed = 0;

    void increase(std::int64_t amount) noexcept {
        current += amount;
        peak = std::max(peak, current);
        allocated += amount;
    }
    void decrease(std::int64_t amount) noexcept {
        current -= amount;
        freed += amount;
    }
};

// One counter over everything, one for each kind of pool.
struct PoolCounters {
    Counter all;
    Counter small_pool;
    Counter large_pool;

    void increase(bool small, std::uint64_t amount) noexcept {
        const auto signed_amount = static_cast<std::int64_t>(amount);
        all.increase(signed_amount);
        (small ? small_pool : large_pool).increase(signed_amount);
    }
    void decrease(bool small, std::uint64_t amount) noexcept {
        const auto signed_amount = static_cast<std::int64_t>(amount);
        all.decrease(signed_amount);
        (small ? small_pool : large_pool).decrease(signed_amount);
    }
    void change(bool small, std::int64_t amount) noexcept {
        if (amount > 0) {
            increase(small, static_cast<std::uint64_t>(amount));
        } else if (amount < 0) {
            decrease(small, static_cast<std::uint64_t>(-amount));
        }
    }
};

// What torch.cuda.memory_stats counts, under its names.
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

    // Every value under the key of torch.cuda.memory_stats, sorted by key.
    [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> flattened() const;
};

}  // namespace gpuviz
