#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/host_allocator.hpp"
#include "cupy/cupy_state.hpp"
#include "cupy/pinned_pointer.hpp"
#include "record/session.hpp"

namespace gpuviz::cupy {

class PinnedAllocator;

// The `mem` of a cupy.cuda.PinnedMemoryPointer; frees its memory on destruction.
class PinnedMemory {
  public:
    PinnedMemory(PinnedAllocator& allocator, std::uint64_t address, std::size_t size) noexcept
        : allocator_(allocator), address_(address), size_(size) {}
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();

    [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    PinnedAllocator& allocator_;
    std::uint64_t address_;
    std::size_t size_;
};

// The callable for cupy.cuda.set_pinned_memory_allocator.
//
// CuPy does not report which streams use pinned memory. Its reuse waits for the work queued until
// the free on the current stream of the freeing thread, and through the legacy default stream for
// that of all blocking streams; and for the copies that a recording has seen.
//
// CuPy calls malloc() and deletes memory with the GIL held, which is released before waiting for a
// lock or the driver. Never destroyed after the first allocation, like the memory's allocator.
class PinnedAllocator {
  public:
    static constexpr const char* name = "malloc_pinned";
    static constexpr const char* docstring =
        "malloc_pinned(size)\n--\n\n"
        "Return `size` bytes of pinned host memory as a cupy.cuda.PinnedMemoryPointer. Made for\n"
        "`cupy.cuda.set_pinned_memory_allocator(gpuviz.malloc_pinned)`.\n\n"
        "It comes from a caching allocator, and is reused once the current stream of the thread\n"
        "that frees it and all blocking streams have done their work queued before the free, and\n"
        "with it the copies on other streams that a recording has seen.\n\n"
        "Raises:\n"
        "    cupy.cuda.runtime.CUDARuntimeError: The driver has no more pinned memory.\n"
        "    DeviceUnavailableError: There is no CuPy or no usable driver.\n"
        "    TypeError: `size` is no integer.\n"
        "    ValueError: `size` is negative or 2**64 or more.\n";

    // `pointer_type` is cupy.cuda.PinnedMemoryPointer. `open_host(device)` returns the process's
    // HostAllocator; `open_device(ordinal)` the CachingAllocator of a device, whose Device the
    // HostAllocator then knows; `refused(text)` the exception to raise for a HostOutOfMemory.
    PinnedAllocator(nanobind::object pointer_type, CupyState state, nanobind::callable open_host,
                    nanobind::callable open_device, nanobind::callable refused);
    PinnedAllocator(const PinnedAllocator&) = delete;
    PinnedAllocator& operator=(const PinnedAllocator&) = delete;

    // A new PinnedMemoryPointer, or null with a Python exception set.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;
    void free(std::uint64_t address) noexcept;

    // Captures call sites for this session; null ends this.
    void set_session(record::Session* session, bool stacks) noexcept;

    // To be called in the child of a fork, where CUDA is unusable.
    void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }

    // Whether pointers are written directly, not by CuPy's constructor.
    [[nodiscard]] bool is_direct() const noexcept { return pointer_.is_direct(); }
    [[nodiscard]] std::uint64_t lost_frees() const noexcept { return lost_frees_; }

  private:
    [[nodiscard]] allocator::HostAllocator& host_allocator(int device);
    [[nodiscard]] device::Device& device_at(int ordinal);
    [[nodiscard]] record::CallSite call_site() const noexcept;
    // Null with a Python exception set if the driver refuses.
    [[nodiscard]] PyObject* malloc_bytes(std::size_t size);
    [[nodiscard]] PyObject* pointer_to(std::uint64_t address, std::size_t size);

    PinnedPointer pointer_;
    CupyState state_;
    nanobind::callable open_host_;
    nanobind::callable open_device_;
    nanobind::callable refused_;
    allocator::HostAllocator* host_ = nullptr;
    std::array<device::Device*, record::Session::max_devices> devices_{};
    record::Session* session_ = nullptr;
    bool stacks_ = true;
    std::uint64_t lost_frees_ = 0;
    std::atomic<bool> abandoned_{false};
};

}  // namespace gpuviz::cupy
