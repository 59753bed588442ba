#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace gpuviz::state {

// The first of the ranges, keyed by address, that ends after `address`.
template <typename Range>
[[nodiscard]] typename std::map<std::uint64_t, Range>::iterator first_overlapping(
    std::map<std::uint64_t, Range>& ranges, std::uint64_t address) {
    const auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) return next;
    const auto previous = std::prev(next);
    return previous->first + previous->second.size > address ? previous : next;
}

}  // namespace gpuviz::state
