#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/device.hpp"

namespace gpuviz::allocator {

// (size, address) as one number, compared by two instructions without a branch.
__extension__ using OrderedKey = unsigned __int128;

constexpr OrderedKey ordered_key(std::uint64_t size, device::Address address) noexcept {
    return static_cast<OrderedKey>(size) << 64 | address;
}

// An entry of a sorted array; empty entries come last.
template <typename Value>
struct OrderedEntry {
    std::uint64_t size = std::numeric_limits<std::uint64_t>::max();
    device::Address address = std::numeric_limits<device::Address>::max();
    Value value{};

    [[nodiscard]] OrderedKey key() const noexcept { return ordered_key(size, address); }
};

// One step of a search: advances `index` by 0 to 3 times `step` past entries less than `key`. It
// counts instead of branching, because for random sizes every second branch is mispredicted.
template <typename Entry>
inline std::size_t pass_less(const Entry* entries, std::size_t index, std::size_t step,
                             OrderedKey key) noexcept {
    const auto less = [&](std::size_t steps) -> std::size_t {
        return entries[index + steps * step - 1].key() < key ? 1 : 0;
    };
    return index + step * (less(1) + less(2) + less(3));
}

// The number of entries that a search among `count` may read: the next greater power of four.
constexpr std::size_t span(std::size_t count) noexcept {
    std::size_t span = 1;
    while (span <= count) {
        span *= 4;
    }
    return span;
}

// The index of the first of `count` entries that is not less than `key`; there are span(count)
// entries, empty ones last.
template <typename Entry>
inline std::size_t first_not_less(const Entry* entries, std::size_t count,
                                  OrderedKey key) noexcept {
    std::size_t index = 0;
    for (std::size_t step = span(count) / 4; step > 0; step /= 4) {
        index = pass_less(entries, index, step, key);
    }
    return index;
}

}  // namespace gpuviz::allocator
