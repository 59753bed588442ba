#include "torch/device_memory.hpp"

#include <algorithm>

#include "torch/homes.hpp"

namespace gpuviz::torch {

using record::Action;
using record::MemoryEvent;

namespace {

// By torch's rule for splitting the free block at the address, which ends at the next live one.
std::uint64_t size_between(std::uint64_t address, std::uint64_t next,
                           const DeviceMemory::Homes::value_type& home, std::uint64_t size,
                           std::uint64_t max_split_size) {
    const std::uint64_t end = std::min(home.first + home.second.size, next);
    const bool finely = home.second.is_expandable || home.second.pool % 2 == 0;
    return block_size(end - address, size, finely, max_split_size);
}

}  // namespace

void DeviceMemory::allocated(MemoryEvent& event, const BlockSizes& sizes) {
    const auto home = home_at(homes, event.address);
    const auto next = lives.upper_bound(event.address);
    event.requested_size = event.size;
    event.size = allocator::round_size(std::max<std::uint64_t>(event.size, 1), sizes.divisions);
    if (home != homes.end()) {
        event.pool = home->second.pool;
        const std::uint64_t until = next == lives.end() ? ~std::uint64_t{0} : next->first;
        event.size = size_between(event.address, until, *home, event.size, sizes.max_split_size);
    }
    lives.insert_or_assign(next, event.address, Live{event.size, event.requested_size, event.pool});
}

bool DeviceMemory::freed(MemoryEvent& event) {
    const bool is_same = requested != lives.end() && requested->first == event.address;
    const auto live = is_same ? requested : lives.find(event.address);
    if (live == lives.end()) {
        return false;  // it was freed before the state was known
    }
    requested = live;
    event.size = live->second.size;
    event.requested_size = live->second.requested_size;
    event.pool = live->second.pool;
    if (event.action == Action::free_completed) {
        lives.erase(live);
        requested = lives.end();
    }
    return true;
}

void DeviceMemory::mapped(const MemoryEvent& event) {
    const bool is_expandable = event.action == Action::segment_map;
    const Home home{event.size, event.stream, event.pool, is_expandable};
    if (is_expandable) {
        add_run(homes, event.address, home);
    } else {
        homes.insert_or_assign(event.address, home);
    }
}

bool DeviceMemory::unmapped(MemoryEvent& event) {
    const auto home = home_at(homes, event.address);
    if (home == homes.end()) {
        return false;  // it was mapped before the state was known
    }
    event.pool = home->second.pool;
    if (event.action == Action::segment_free) {
        homes.erase(home);
        return true;
    }
    return cut_run(homes, event.address, event.address + event.size);
}

}  // namespace gpuviz::torch
