#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/use_tracker.hpp"
#include "device/device.hpp"

namespace gpuviz::allocator {

// A write to memory after its free.
struct WriteAfterFree {
    device::Address address;  // of the freed block
    std::uint64_t size;
    std::uint64_t offset;     // of the first changed byte that was found
    std::uint32_t allocated;  // call stacks
    std::uint32_t freed;
    std::uint32_t reused;
    device::StreamHandle stream;
};

// Fills freed blocks with a pattern, and looks for changes when their memory is used again.
//
// The program never waits: fills, and copies of samples to the host, are enqueued on the memory's
// stream, and the samples are compared when they have arrived. Small blocks are compared as a
// whole. Nothing is enqueued on a stream that captures or may not exist any more.
class Poison {
  public:
    static constexpr std::size_t buffer_bytes = std::size_t{4} << 20;

    // `buffer` has buffer_bytes for the samples, as of Device::host_memory().
    Poison(device::Device& device, UseTracker& tracker, void* buffer);

    void fill(const Block& block, std::uint32_t freed);
    // Memory of a block that was free is used again.
    void check(const Block& block, std::uint32_t reused);
    // Memory returns to the device.
    void forget(device::Address address, std::uint64_t size);
    // Compares the samples that have arrived; with `waits` all of them.
    void compare(bool waits = false);

    [[nodiscard]] bool is_comparing() const noexcept { return !checks_.empty(); }
    [[nodiscard]] const std::vector<WriteAfterFree>& found() const noexcept { return found_; }
    // Blocks that could not be filled or checked.
    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_; }

  private:
    struct Filled {
        device::Address end;   // of what is left of the freed block
        WriteAfterFree write;  // if there is one
    };
    struct Check {
        device::EventHandle event;
        std::size_t slot;
        device::Samples samples;
        WriteAfterFree write;
    };

    void enqueue_check(device::Address start, device::Address end, const WriteAfterFree& write);
    void compare(const Check& check);

    device::Device& device_;
    UseTracker& tracker_;
    std::byte* buffer_;
    std::vector<std::size_t> free_slots_;
    std::map<device::Address, Filled> filled_;  // by start
    std::vector<Check> checks_;
    std::vector<WriteAfterFree> found_;
    std::uint64_t skipped_ = 0;
};

}  // namespace gpuviz::allocator
