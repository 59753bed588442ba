#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "allocator/caching_allocator.hpp"
#include "record/session.hpp"

namespace gpuviz::clients {

// The interpreter's part in allocations. All are called without a lock of ours, on any thread, with
// or without the GIL.
struct Interpreter {
    // The allocator of a device seen for the first time, which lives as long as the process.
    std::function<allocator::CachingAllocator*(int device)> open_device;
    // Runs a call that may wait for the device, without the GIL: a host callback of CUDA may need
    // it for the device to finish.
    std::function<void(const std::function<void()>& call)> run_unlocked;
    // The text of a failed request.
    std::function<std::string(const allocator::OutOfMemory& error)> describe;
};

// The caching allocators of this process, one a device, for libraries that allocate from any
// thread, with or without the GIL. Never destroyed after the first allocation, because memory may
// be freed at any later time.
class SharedPool {
  public:
    explicit SharedPool(Interpreter interpreter) : interpreter_(std::move(interpreter)) {}
    SharedPool(const SharedPool&) = delete;
    SharedPool& operator=(const SharedPool&) = delete;

    // Throws OutOfMemory, DeviceError, or std::out_of_range for an impossible device.
    [[nodiscard]] device::Address allocate(std::uint64_t size, int device,
                                           device::StreamHandle stream,
                                           record::Framework framework);
    // What fails is counted, and the memory stays allocated.
    void free(device::Address address, int device) noexcept;
    // The same, for memory that was used until now on `last`, which may be another stream than that
    // of the allocation.
    void free_after(device::Address address, int device, device::StreamHandle last) noexcept;
    // Memory of another allocator is ignored; this and the next do nothing if they fail.
    void record_stream(device::Address address, device::StreamHandle stream) noexcept;
    void empty_cache() noexcept;
    // Throws std::invalid_argument for a fraction outside [0, 1].
    void set_memory_fraction(double fraction, int device);

    [[nodiscard]] std::string describe(const allocator::OutOfMemory& error) const;

    // Captures call sites for this session; null ends this. Returns when no thread uses the session
    // before any more, so it must be called without the GIL.
    void set_session(record::Session* session, bool stacks) noexcept;

    // To be called in the child of a fork. If a device was opened before, CUDA is unusable there
    // and locks may be held forever: allocations throw from now on, and frees do nothing.
    void abandon_after_fork() noexcept;

    // Allocations and frees that failed and were not reported to the caller.
    [[nodiscard]] std::uint64_t lost_frees() const noexcept { return lost_frees_.load(); }

  private:
    class Call;

    [[nodiscard]] allocator::CachingAllocator& opened(int device);
    [[nodiscard]] allocator::CachingAllocator* known(int device) const noexcept;
    template <typename Action>
    void without_exceptions(Action&& action) noexcept;
    void free_now(device::Address address, allocator::CachingAllocator& owner,
                  const record::CallSite& site);

    Interpreter interpreter_;
    std::array<std::atomic<allocator::CachingAllocator*>, record::Session::max_devices>
        allocators_{};
    std::atomic<record::Session*> session_{nullptr};
    std::atomic<bool> stacks_{true};
    std::atomic<int> recorded_calls_{0};  // in progress, that may use the session
    std::atomic<bool> abandoned_{false};
    std::atomic<std::uint64_t> lost_frees_{0};
};

}  // namespace gpuviz::clients
