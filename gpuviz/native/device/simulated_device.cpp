#include "device/simulated_device.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

namespace gpuviz::device {

namespace {

constexpr std::uint64_t kGranule = std::uint64_t{1} << 9;
constexpr std::uint64_t kRegion = std::uint64_t{32} << 20;
// The first region of real processes starts with this hole; their context uses the rest of it.
constexpr std::uint64_t kFirstHole = std::uint64_t{420} << 20;
constexpr std::uint64_t kFirstRegion = std::uint64_t{448} << 20;
constexpr Address kFirstRegionStart = 0x7f00'0000'0000 - kFirstRegion;
constexpr Address kRangesEnd = 0x3f00'0000'0000;
constexpr std::uint64_t kLargeDevice = std::uint64_t{1} << 40;
constexpr Address kLargeRangesStart = Address{1} << 48;
constexpr Address kLargeRangesEnd = Address{1} << 53;  // up to here a double is exact

std::uint64_t whole(std::uint64_t size, std::uint64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

bool overlaps(const std::map<Address, std::uint64_t>& ranges, Address address, std::uint64_t size) {
    const auto next = ranges.lower_bound(address + size);
    if (next == ranges.begin()) {
        return false;
    }
    const auto last = std::prev(next);
    return last->first + last->second > address;
}

}  // namespace

SimulatedDevice::SimulatedDevice(std::uint64_t capacity, int ordinal)
    : OfflineDevice(capacity, ordinal),
      holes_{{kFirstRegionStart, kFirstHole}},
      lowest_range_(capacity > kLargeDevice ? kLargeRangesEnd : kRangesEnd) {}

std::optional<Address> SimulatedDevice::allocate(std::uint64_t size) {
    const std::uint64_t taken = whole(size, kGranule);
    if (taken < size || !take_unless_refused(taken)) {
        return std::nullopt;
    }
    if (const Address place = suggested_; place != 0 && take_suggested_hole(taken)) {
        return place;
    }
    if (const Address suggested = take_suggestion(taken); suggested != 0) {
        elsewhere_.emplace(suggested, taken);
        return suggested;
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

bool SimulatedDevice::take_suggested_hole(std::uint64_t size) {
    const auto after = holes_.upper_bound(suggested_);
    if (after == holes_.begin()) {
        return false;
    }
    const auto [start, room] = *std::prev(after);
    const std::uint64_t before = suggested_ - start;
    if (before >= room || size > room - before) {
        return false;
    }
    holes_.erase(std::prev(after));
    if (before > 0) {
        holes_.emplace(start, before);
    }
    if (room - before > size) {
        holes_.emplace(suggested_ + size, room - before - size);
    }
    allocations_.emplace(std::exchange(suggested_, 0), size);
    return true;
}

Address SimulatedDevice::take_suggestion(std::uint64_t size) noexcept {
    const Address address = std::exchange(suggested_, 0);
    if (address == 0 || address > kLargeRangesEnd || size > kLargeRangesEnd - address) {
        return 0;
    }
    for (const Ranges* ranges : {&holes_, &allocations_, &elsewhere_, &reserved_}) {
        if (overlaps(*ranges, address, size)) {
            return 0;
        }
    }
    return address;
}

void SimulatedDevice::free(Address address, std::uint64_t) {
    if (const auto outside = elsewhere_.find(address); outside != elsewhere_.end()) {
        finish_all();
        give_back(outside->second);
        elsewhere_.erase(outside);
        return;
    }
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
    if (!elsewhere_.empty()) {
        lowest = std::min(lowest, elsewhere_.begin()->first);
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
    Address address = take_suggestion(size);
    while (address == 0 || overlaps(elsewhere_, address, size) ||
           overlaps(reserved_, address, size)) {
        const Address end = total_memory() > kLargeDevice ? kLargeRangesStart : 0;
        if (whole(size, kRegion) > lowest_range_ - end) {
            throw DeviceError("The simulated device has no addresses left for a range of " +
                              std::to_string(size) + " bytes.");
        }
        lowest_range_ -= whole(size, kRegion);
        address = lowest_range_;
    }
    reserved_.emplace(address, size);
    return address;
}

void SimulatedDevice::release_range(Address address, std::uint64_t) { reserved_.erase(address); }

bool SimulatedDevice::map(Address, std::uint64_t size, std::uint64_t) {
    return take_unless_refused(size);
}

void SimulatedDevice::unmap(Address, std::uint64_t size, std::uint64_t) { give_back(size); }

}  // namespace gpuviz::device
