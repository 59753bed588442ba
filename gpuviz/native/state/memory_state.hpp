#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "state/device_memory.hpp"

namespace gpuviz::state {

// The table `memory_events`, column by column, all of one length. `action` counts as the enum.
struct MemoryColumns {
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

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

// The table `memory_levels`, column by column. largest_free is -1 where unknown.
struct MemoryLevels {
    std::vector<std::int64_t> time;
    std::vector<std::int16_t> device;
    std::vector<std::int64_t> requested;
    std::vector<std::int64_t> allocated;
    std::vector<std::int64_t> active;
    std::vector<std::int64_t> reserved;
    std::vector<std::int64_t> inactive_split;
    std::vector<std::int64_t> largest_free;
};

// When most bytes were allocated, on a device or on all together.
struct MemoryPeak {
    std::size_t rows;  // that had been applied by then, counted from the first row of the table
    std::int64_t allocated;
    std::int64_t reserved;
};

// The memory of every device after the events applied so far. For one thread at a time.
class MemoryState {
  public:
    static constexpr auto forever = std::numeric_limits<std::int64_t>::max();

    MemoryState() = default;
    MemoryState(const MemoryState&) = delete;
    MemoryState& operator=(const MemoryState&) = delete;

    // Applies rows [first, last) whose time is at most until_ns.
    void apply(const MemoryColumns& events, std::size_t first, std::size_t last,
               std::int64_t until_ns = forever);
    // Applies rows [first, last); one row of levels whenever a level changed.
    [[nodiscard]] MemoryLevels apply_with_levels(const MemoryColumns& events, std::size_t first,
                                                 std::size_t last);
    // Applies rows [first, last); the first moment of the most allocated bytes, of one device if
    // one is given. Nothing, and some rows are applied, if their times do not ascend.
    [[nodiscard]] std::optional<MemoryPeak> apply_and_find_peak(const MemoryColumns& events,
                                                                std::size_t first, std::size_t last,
                                                                std::optional<std::int16_t> device);
    // Appends the levels of every device at a time.
    void append_levels(std::int64_t time_ns, MemoryLevels& levels) const;
    // What was applied so far existed before: it counts in no peak and no accumulated statistic.
    void forget_the_past() noexcept;

    [[nodiscard]] const std::map<std::int16_t, DeviceMemory>& devices() const noexcept {
        return devices_;
    }
    // Events that contradict those before them, or of a device or action that cannot be.
    [[nodiscard]] std::int64_t anomalies() const noexcept;

  private:
    // False: the row makes no sense.
    bool apply_row(const MemoryColumns& events, std::size_t row);

    std::map<std::int16_t, DeviceMemory> devices_;
    std::int64_t anomalies_ = 0;
};

}  // namespace gpuviz::state
