#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/offline_device.hpp"

namespace gpuviz::device {

// A device that returns the addresses of a recording: the k-th allocation returns the k-th of
// `segment_addresses`; a new address range starts at the recording's next mapping (`map_addresses`,
// one for each successful map). Out of memory when no addresses are left.
class RecordedDevice final : public OfflineDevice {
  public:
    RecordedDevice(std::uint64_t total_memory, std::vector<Address> segment_addresses,
                   std::vector<Address> map_addresses, int ordinal = 0);

    [[nodiscard]] std::optional<Address> allocate(std::uint64_t size) override;
    void free(Address address, std::uint64_t size) override;
    [[nodiscard]] Address reserve_range(std::uint64_t size) override;
    void release_range(Address address, std::uint64_t size) override;
    [[nodiscard]] bool map(Address address, std::uint64_t size, std::uint64_t page) override;
    void unmap(Address address, std::uint64_t size, std::uint64_t page) override;

  private:
    std::vector<Address> segment_addresses_;
    std::vector<Address> map_addresses_;
    std::size_t allocations_ = 0;
    std::size_t mappings_ = 0;
};

}  // namespace gpuviz::device
