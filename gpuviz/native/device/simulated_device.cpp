#include "device/simulated_device.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace gpuviz::device {

namespace {

constexpr std::uint64_t kGranule = std::uint64_t{1} << 9;
constexpr std::uint64_t kRegion = std::uint64_t{32} << 20;
// The first region of real processes starts with this hole; their context uses the rest of it.
constexpr std::uint64_t kFirstHole = std::uint64_t{420} << 20;
constexpr std::uint64_t kFirstRegion = std::uint64_t{448} << 20;
constexpr Address kFirstRegionStart = 0x7f00'0000'0000 - kFirstRegion;
constexpr Address kRangesEnd = 0x3f00'0000'0000;

std::uint64_t whole(std::uint64_t size, std::uint64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

}  // namespace

SimulatedDevice::SimulatedDevice(std::uint64_t capacity, int ordinal)
    : OfflineDevice(capacity, ordinal),
      holes_{{kFirstRegionStart, kFirstHole}},
      lowest_range_(kRangesEnd) {}

std::optional<Address> SimulatedDevice::allocate(std::uint64_t size) {
    const std::uint64_t taken = whole(size, kGranule);
    if (taken < size || !take_unless_refused(taken)) {
        return std::nullopt;
    }
    auto hole = std::find_if(holes_.begin(), holes_.end(),
                             [&](const auto& entry) { return entry.second >= taken; });
    if (hole == holes_.end()) {
        const std::uint64_t region = whole(taken, kRegion);
        hole = holes_.emplace(lowest_region() - region, region).first;
    }
    const auto [address, room] = *hole;
    holes_.erase(hole);
    if (room > taken) {
        holes_.emplace(address + taken, room - taken);
    }
    allocations_.emplace(address, taken);
    return address;
}

bool SimulatedDevice::take_unless_refused(std::uint64_t size) noexcept {
    if (!take(size)) {
        return false;
    }
    if (used() > most_used_) {
        give_back(size);
        return false;
    }
    return true;
}

void SimulatedDevice::free(Address address, std::uint64_t) {
    const auto allocation = allocations_.find(address);
    if (allocation == allocations_.end()) {
        std::ostringstream text;
        text << "The simulated device has no allocation at 0x" << std::hex << address << ".";
        throw DeviceError(text.str());
    }
    finish_all();
    give_back(allocation->second);
    add_hole(address, allocation->second);
    allocations_.erase(allocation);
}

Address SimulatedDevice::lowest_region() const noexcept {
    Address lowest = kFirstRegionStart;
    if (!holes_.empty()) {
        lowest = std::min(lowest, holes_.begin()->first);
    }
    if (!allocations_.empty()) {
        lowest = std::min(lowest, allocations_.begin()->first);
    }
    return lowest / kRegion * kRegion;
}

// Merges the hole with its neighbours, and removes whole units of 32 MiB outside the first region.
void SimulatedDevice::add_hole(Address address, std::uint64_t size) {
    Address end = address + size;
    auto after = holes_.lower_bound(address);
    if (after != holes_.end() && end == after->first) {
        end += after->second;
        after = holes_.erase(after);
    }
    if (after != holes_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == address) {
            address = before->first;
            holes_.erase(before);
        }
    }
    const Address released = whole(address, kRegion);
    const Address kept = std::max(end / kRegion * kRegion, released);
    if (address >= kFirstRegionStart || released >= end) {
        holes_.emplace(address, end - address);
        return;
    }
    if (released > address) {
        holes_.emplace(address, released - address);
    }
    if (end > kept) {
        holes_.emplace(kept, end - kept);
    }
}

Address SimulatedDevice::reserve_range(std::uint64_t size) {
    lowest_range_ -= whole(size, kRegion);
    return lowest_range_;
}

void SimulatedDevice::release_range(Address, std::uint64_t) {}

bool SimulatedDevice::map(Address, std::uint64_t size, std::uint64_t) {
    return take_unless_refused(size);
}

void SimulatedDevice::unmap(Address, std::uint64_t size, std::uint64_t) { give_back(size); }

}  // namespace gpuviz::device
