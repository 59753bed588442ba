#include "device/recorded_device.hpp"

#include <string>
#include <utility>

namespace gpuviz::device {

RecordedDevice::RecordedDevice(std::uint64_t total_memory, std::vector<Address> segment_addresses,
                               std::vector<Address> map_addresses, int ordinal)
    : OfflineDevice(total_memory, ordinal),
      segment_addresses_(std::move(segment_addresses)),
      map_addresses_(std::move(map_addresses)) {}

std::optional<Address> RecordedDevice::allocate(std::uint64_t size) {
    if (allocations_ == segment_addresses_.size() || !take(size)) {
        return std::nullopt;
    }
    return segment_addresses_[allocations_++];
}

void RecordedDevice::free(Address, std::uint64_t size) {
    finish_all();
    give_back(size);
}

Address RecordedDevice::reserve_range(std::uint64_t size) {
    if (mappings_ == map_addresses_.size()) {
        throw DeviceError("The recording has no address range of " + std::to_string(size) +
                          " bytes after its " + std::to_string(mappings_) + " mappings.");
    }
    return map_addresses_[mappings_];
}

void RecordedDevice::release_range(Address, std::uint64_t) {}

bool RecordedDevice::map(Address, std::uint64_t size, std::uint64_t) {
    if (mappings_ == map_addresses_.size() || !take(size)) {
        return false;
    }
    ++mappings_;
    return true;
}

void RecordedDevice::unmap(Address, std::uint64_t size, std::uint64_t) { give_back(size); }

}  // namespace gpuviz::device
