#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuviz::state {

// A size as a signed number, as in statistics.
inline std::int64_t bytes(std::uint64_t size) noexcept { return static_cast<std::int64_t>(size); }

// One statistic of torch.cuda.memory_stats.
struct Stat {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;
    std::int64_t freed = 0;

    // A negative amount is a decrease. Accumulated bytes wrap, which only invalid data can reach.
    void change(std::int64_t amount) noexcept {
        current += amount;
        peak = std::max(peak, current);
        std::int64_t& accumulated = amount > 0 ? allocated : freed;
        const auto magnitude = static_cast<std::uint64_t>(amount > 0 ? amount : -amount);
        accumulated =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(accumulated) + magnitude);
    }
    void forget_the_past() noexcept { *this = {current, current, 0, 0}; }
};

// The quantities counted for each pool kind, named as in torch.cuda.memory_stats.
enum class Quantity : std::uint8_t {
    allocation,
    allocated_bytes,
    active,
    active_bytes,
    requested_bytes,
    segment,
    reserved_bytes,
    inactive_split,
    inactive_split_bytes,
};

inline constexpr std::array<std::string_view, 9> quantity_names = {
    "allocation", "allocated_bytes", "active",         "active_bytes",         "requested_bytes",
    "segment",    "reserved_bytes",  "inactive_split", "inactive_split_bytes",
};

enum class PoolKind : std::uint8_t { all, small_pool, large_pool };

inline constexpr std::array<std::string_view, 3> pool_kind_names = {"all", "small_pool",
                                                                    "large_pool"};

// The statistics of one device that can be derived from events.
class MemoryTotals {
  public:
    void change(Quantity quantity, std::uint32_t pool, std::int64_t amount) noexcept {
        if (amount == 0) return;
        const auto kind = (pool & 1) != 0 ? PoolKind::large_pool : PoolKind::small_pool;
        stat(quantity, PoolKind::all).change(amount);
        stat(quantity, kind).change(amount);
    }
    [[nodiscard]] const Stat& of(Quantity quantity, PoolKind kind) const noexcept {
        return stats_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(quantity)];
    }
    // Peaks become the current values; accumulated values and counters become 0.
    void forget_the_past() noexcept {
        for (auto& kind : stats_) {
            for (auto& stat : kind) stat.forget_the_past();
        }
        num_ooms = num_device_alloc = num_device_free = 0;
    }

    std::int64_t num_ooms = 0;
    std::int64_t num_device_alloc = 0;
    std::int64_t num_device_free = 0;

  private:
    [[nodiscard]] Stat& stat(Quantity quantity, PoolKind kind) noexcept {
        return stats_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(quantity)];
    }

    std::array<std::array<Stat, quantity_names.size()>, pool_kind_names.size()> stats_{};
};

}  // namespace gpuviz::state
