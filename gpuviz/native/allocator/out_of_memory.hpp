#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::allocator {

// The numbers in torch's out-of-memory message, in bytes.
struct OutOfMemoryReport {
    int device = 0;
    std::uint64_t requested_size = 0;
    std::uint64_t alloc_size = 0;  // of the requested segment
    std::uint64_t device_free = 0;
    std::uint64_t device_total = 0;
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
    std::uint64_t private_pools_free = 0;               // cached in private pools
    std::optional<std::uint64_t> limit = std::nullopt;  // from the memory fraction
    bool expandable_segments = false;
    std::vector<device::ProcessMemory> processes = {};
    std::uint32_t this_process = 0;
};

class OutOfMemory : public std::exception {
  public:
    explicit OutOfMemory(const OutOfMemoryReport& report);

    [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }

    OutOfMemoryReport report;
    std::string message;
};

// The driver has no more pinned memory, even after the cache was released.
class HostOutOfMemory : public std::bad_alloc {
  public:
    explicit HostOutOfMemory(std::uint64_t size);
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

  private:
    std::string message_;
};

// A size in torch's format: "512 bytes", "1.50 MiB".
[[nodiscard]] std::string format_size(std::uint64_t size);

}  // namespace gpuviz::allocator
