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

// Columns of the table `memory_events`, of equal length. `action` is a value of the enumeration.
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
    std::span<const std::int8_t> framework;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

// The event of a row; nothing if the row is invalid.
[[nodiscard]] std::optional<DeviceEvent> event_of(const MemoryColumns& events, std::size_t row);

// Columns of the table `memory_levels`. largest_free is -1 if unknown.
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

// The peak of allocated bytes, of a device or of all together.
struct MemoryPeak {
    std::size_t rows;  // applied up to the peak, counted from the first row of the table
    std::int64_t allocated;
    std::int64_t reserved;
};

// The memory of every device after the events applied so far. Not thread-safe.
class MemoryState {
  public:
    static constexpr auto forever = std::numeric_limits<std::int64_t>::max();

    // Returns the memory of the row's device; null if the row is invalid.
    const DeviceMemory* apply_row(const MemoryColumns& events, std::size_t row);
    // Applies rows [first, last) whose time is at most until_ns.
    void apply(const MemoryColumns& events, std::size_t first, std::size_t last,
               std::int64_t until_ns = forever);
    // Applies rows [first, last); returns one row of levels per change.
    [[nodiscard]] MemoryLevels apply_with_levels(const MemoryColumns& events, std::size_t first,
                                                 std::size_t last);
    // Applies rows [first, last) up to the first peak of allocated bytes, of one device if given.
    // Returns nothing, after applying no row, if their times are not ascending.
    [[nodiscard]] std::optional<MemoryPeak> apply_up_to_peak(const MemoryColumns& events,
                                                             std::size_t first, std::size_t last,
                                                             std::optional<std::int16_t> device);
    // Appends the levels of every device at a time.
    void append_levels(std::int64_t time_ns, MemoryLevels& levels) const;
    // Resets peaks and accumulated statistics, so that the events so far count as initial events.
    void forget_the_past() noexcept;

    [[nodiscard]] const std::map<std::int16_t, DeviceMemory>& devices() const noexcept {
        return devices_;
    }
    // The number of events that contradict earlier ones, or have an invalid device or action.
    [[nodiscard]] std::int64_t anomalies() const noexcept;

  private:
    [[nodiscard]] std::size_t block_count() const noexcept;

    std::map<std::int16_t, DeviceMemory> devices_;
    std::int64_t anomalies_ = 0;
};

}  // namespace gpuviz::state
