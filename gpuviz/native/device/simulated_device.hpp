#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "device/offline_device.hpp"

namespace gpuviz::device {

// A GPU without a GPU: a capacity, and addresses as NVIDIA's driver hands them out. An allocation
// goes to the lowest hole of a region that holds it; without one, to a new region of whole 32 MiB
// below all others. Regions vanish by 32 MiB as they become free. Address ranges for mapping lie
// apart, each below the last.
class SimulatedDevice : public OfflineDevice {
  public:
    explicit SimulatedDevice(std::uint64_t capacity, int ordinal = 0);

    [[nodiscard]] std::optional<Address> allocate(std::uint64_t size) override;
    void free(Address address, std::uint64_t size) override;
    [[nodiscard]] Address reserve_range(std::uint64_t size) override;
    void release_range(Address address, std::uint64_t size) override;
    [[nodiscard]] bool map(Address address, std::uint64_t size, std::uint64_t page) override;
    void unmap(Address address, std::uint64_t size, std::uint64_t page) override;

    [[nodiscard]] std::uint64_t used() { return total_memory() - memory_info().free; }
    // Refuses what goes beyond `bytes` in all, though memory_info() tells of more: as under MPS.
    void refuse_beyond(std::uint64_t bytes) noexcept { most_used_ = bytes; }

  private:
    [[nodiscard]] bool take_unless_refused(std::uint64_t size) noexcept;
    void add_hole(Address address, std::uint64_t size);

    [[nodiscard]] Address lowest_region() const noexcept;

    std::map<Address, std::uint64_t> holes_;  // size by address, within regions
    std::map<Address, std::uint64_t> allocations_;
    Address lowest_range_;
    std::uint64_t most_used_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace gpuviz::device
