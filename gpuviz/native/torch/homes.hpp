#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "allocator/size_classes.hpp"

// Memory that torch's allocator has from the driver, by its address: segments, and runs of mapped
// pages. A `Home` has a size, a stream, a pool and is_expandable.
namespace gpuviz::torch {

// The home that contains the address; the end if there is none.
template <typename Home>
[[nodiscard]] auto home_at(std::map<std::uint64_t, Home>& homes, std::uint64_t address) {
    const auto after = homes.upper_bound(address);
    if (after == homes.begin()) {
        return homes.end();
    }
    const auto home = std::prev(after);
    return address < home->first + home->second.size ? home : homes.end();
}

// Adds mapped pages. Those next to others of the same stream and pool are one run.
template <typename Home>
void add_run(std::map<std::uint64_t, Home>& homes, std::uint64_t address, Home run) {
    const auto touches = [&](const Home& other) {
        return other.is_expandable && other.stream == run.stream && other.pool == run.pool;
    };
    const auto next = homes.find(address + run.size);
    if (next != homes.end() && touches(next->second)) {
        run.size += next->second.size;
        homes.erase(next);
    }
    const auto previous = address > 0 ? home_at(homes, address - 1) : homes.end();
    if (previous != homes.end() && touches(previous->second)) {
        previous->second.size += run.size;
    } else {
        homes.insert_or_assign(address, run);
    }
}

// Takes pages out of a run; false, and nothing, where no run contains them all.
template <typename Home>
bool cut_run(std::map<std::uint64_t, Home>& homes, std::uint64_t address, std::uint64_t end) {
    const auto run = home_at(homes, address);
    if (run == homes.end() || !run->second.is_expandable || end <= address) {
        return false;
    }
    const std::uint64_t run_end = run->first + run->second.size;
    if (run_end < end) {
        return false;
    }
    Home rest = run->second;
    if (address > run->first) {
        run->second.size = address - run->first;
    } else {
        homes.erase(run);
    }
    if (end < run_end) {
        rest.size = run_end - end;
        homes.emplace(end, rest);
    }
    return true;
}

// The size of the block that serves `size` bytes at the beginning of a free block of `available`
// bytes, by torch's rule for splitting. `finely`: in a small pool, or with expandable segments.
[[nodiscard]] constexpr std::uint64_t block_size(std::uint64_t available, std::uint64_t size,
                                                 bool finely,
                                                 std::uint64_t max_split_size) noexcept {
    const bool is_split =
        available <= size || allocator::is_split(finely, size, available - size, max_split_size);
    return is_split ? size : available;
}

}  // namespace gpuviz::torch
