#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/codes.hpp"

namespace gpuviz::analysis {

// Columns of the table `memory_events`, of equal length.
struct EventRows {
    std::span<const std::int64_t> time;
    std::span<const std::int8_t> action;
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> requested_size;
    std::span<const std::int16_t> device;
};

// A row of the table `memory_marks`.
struct Mark {
    std::int16_t device;
    std::int32_t event;  // among those of the device
    MarkKind kind;
    std::int64_t bytes;
};

// The event that allocated a block.
struct Allocation {
    std::int16_t device = -1;
    std::int32_t event = -1;  // among those of the device; -1: unknown
};

// Follows the events of the allocators as they are added: which block an address was in, and what
// happened besides allocations and frees of blocks.
class EventFollower {
  public:
    EventFollower() = default;
    // Only `followed` addresses can be found, which saves the memory for all others.
    explicit EventFollower(std::span<const std::uint64_t> followed)
        : followed_(std::in_place, followed.begin(), followed.end()) {}

    void add(const EventRows& events);

    // The block that began at an address and was allocated at a time.
    [[nodiscard]] Allocation block(std::uint64_t address, std::int64_t time) const noexcept;

    // The marks since the last call. Segments released last become a mark once another event of
    // their device has followed, or if no event can follow (`is_whole`).
    [[nodiscard]] std::vector<Mark> take_marks(bool is_whole);

  private:
    struct Life {
        std::int64_t begin;
        std::int64_t end;
        Allocation allocation;
    };
    struct Device {
        std::int32_t events = 0;
        // Segments released one after the other.
        std::int32_t first_released = 0;
        std::int64_t released = 0;
    };

    void follow_block(Action action, std::uint64_t address, std::int64_t time, Allocation event);
    void follow_segments(std::int16_t number, Device& device, Action action, std::int64_t size,
                         std::int64_t requested);
    void mark_released(std::int16_t number, Device& device);

    std::optional<std::unordered_set<std::uint64_t>> followed_;
    std::unordered_map<std::uint64_t, std::vector<Life>> lives_;
    std::map<std::int16_t, Device> devices_;
    std::vector<Mark> marks_;
};

}  // namespace gpuviz::analysis
