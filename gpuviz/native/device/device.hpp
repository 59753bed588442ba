#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

namespace gpuviz::device {

using Address = std::uint64_t;
using StreamHandle = std::uint64_t;  // a raw CUstream; 0 is the legacy default stream
using EventHandle = std::uint64_t;   // a raw CUevent

// A driver call failed, but not because of memory; the message names the call and the error.
class DeviceError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct MemoryInfo {
    std::uint64_t free;
    std::uint64_t total;
};

struct ProcessMemory {
    std::uint32_t process;  // the operating system's id
    std::uint64_t used;
};

// Equally spaced pieces of memory, in bytes.
struct Samples {
    Address first;
    std::uint64_t stride;  // from piece to piece
    std::uint32_t width;   // of a piece
    std::uint32_t count;
};

// The operations of a GPU that a caching allocator needs. Implementations: CUDA, simulated,
// recorded.
//
// Calls come from any thread, one at a time; those about events, streams and pinned memory also at
// the same time.
// Sizes are in bytes.
class Device {
  public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    [[nodiscard]] virtual int ordinal() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t total_memory() const noexcept = 0;
    [[nodiscard]] virtual MemoryInfo memory_info() = 0;

    // The processes that use the device's memory, as far as known.
    [[nodiscard]] virtual std::vector<ProcessMemory> processes() { return {}; }

    // Returns nothing if the device is out of memory.
    [[nodiscard]] virtual std::optional<Address> allocate(std::uint64_t size) = 0;
    // Waits until the device is idle, as cuMemFree does.
    virtual void free(Address address, std::uint64_t size) = 0;

    [[nodiscard]] virtual bool has_virtual_memory() const noexcept = 0;
    [[nodiscard]] virtual Address reserve_range(std::uint64_t size) = 0;
    virtual void release_range(Address address, std::uint64_t size) = 0;
    // Backs [address, address + size) with pages of `page` bytes. False: out of memory, nothing
    // mapped.
    [[nodiscard]] virtual bool map(Address address, std::uint64_t size, std::uint64_t page) = 0;
    virtual void unmap(Address address, std::uint64_t size, std::uint64_t page) = 0;

    // Enqueue on an existing stream; false: it captures, or cannot be referred to, and nothing
    // was done.
    [[nodiscard]] virtual bool fill(Address, std::uint64_t /*size*/, std::uint8_t /*value*/,
                                    StreamHandle) {
        return false;
    }
    [[nodiscard]] virtual bool read(const Samples&, void* /*to*/, StreamHandle) { return false; }
    // Memory of the host to which read() copies without waiting; the device keeps it.
    [[nodiscard]] virtual void* host_memory(std::uint64_t size) = 0;

    // Pinned memory that every device can use; nothing if the driver has none.
    [[nodiscard]] virtual std::optional<Address> allocate_host(std::uint64_t size) = 0;
    // Waits until the device is idle, as cuMemFreeHost does.
    virtual void free_host(Address address, std::uint64_t size) = 0;

    // Events come from a pool of the device, and release() returns them.
    [[nodiscard]] virtual EventHandle record_event(StreamHandle stream) = 0;
    [[nodiscard]] virtual bool is_complete(EventHandle event) = 0;
    virtual void synchronize(EventHandle event) = 0;
    virtual void release(EventHandle event) = 0;

    virtual void synchronize_stream(StreamHandle stream) = 0;
    // Whether what was queued on an existing stream is done, on the legacy default stream also that
    // of blocking streams; false if unknown, as while the stream captures.
    [[nodiscard]] virtual bool is_idle(StreamHandle) { return false; }
    [[nodiscard]] virtual bool is_capturing(StreamHandle stream) = 0;
    // Whether an event can be recorded now: not while the stream captures, and not on the legacy
    // default stream while a blocking stream does.
    [[nodiscard]] virtual bool can_record(StreamHandle stream) { return !is_capturing(stream); }
    // Whether an existing stream that does not capture, other than the legacy default stream, waits
    // for it and is waited for; false if unknown.
    [[nodiscard]] virtual bool is_blocking(StreamHandle) { return false; }
};

}  // namespace gpuviz::device
