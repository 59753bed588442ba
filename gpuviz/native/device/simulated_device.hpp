#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "device/offline_device.hpp"

namespace gpuviz::device {

// A simulated GPU memory with a capacity, and addresses like those of NVIDIA's driver. An
// allocation uses the lowest hole of a region that is large enough, else a new region, a multiple
// of 32 MiB, below all others. Free parts of regions are removed in units of 32 MiB. Address ranges
// for mapping are separate, each below the previous one.
// A device of more than 1 TiB has them above its allocations, where there is room for them.
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
    // The address of the next allocation or address range, if it is free; 0 withdraws it.
    void suggest(Address address) noexcept { suggested_ = address; }
    // Rejects allocations beyond `bytes` in total, although memory_info() reports more, as with
    // MPS.
    void refuse_beyond(std::uint64_t bytes) noexcept { most_used_ = bytes; }

  private:
    using Ranges = std::map<Address, std::uint64_t>;  // size by address

    [[nodiscard]] bool take_unless_refused(std::uint64_t size) noexcept;
    // Takes the suggested address out of a hole; false if it lies in none.
    [[nodiscard]] bool take_suggested_hole(std::uint64_t size);
    // The suggested address if [address, address + size) is free, else 0.
    [[nodiscard]] Address take_suggestion(std::uint64_t size) noexcept;
    void add_hole(Address address, std::uint64_t size);

    [[nodiscard]] Address lowest_region() const noexcept;

    Ranges holes_;  // within regions
    Ranges allocations_;
    Ranges elsewhere_;  // allocations at suggested addresses, outside regions
    Ranges reserved_;   // address ranges for mapping
    Address lowest_range_;
    Address suggested_ = 0;
    std::uint64_t most_used_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace gpuviz::device
