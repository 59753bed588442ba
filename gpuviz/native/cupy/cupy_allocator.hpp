#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/caching_allocator.hpp"
#include "cupy/cupy_pointer.hpp"
#include "cupy/cupy_state.hpp"
#include "record/session.hpp"

namespace gpuviz::cupy {

// The callable that cupy.cuda.set_allocator takes, over one CachingAllocator a device.
//
// malloc() and the free that CuPy calls back run with the GIL held. They ask the allocator without
// waiting first, and release the GIL before they wait for its lock or for the device: a callback
// that CUDA runs on the host may need the GIL to let the device finish. Never destroyed once it
// served memory, since arrays outlive everything.
class CupyAllocator {
  public:
    // `open_device(ordinal)` returns the CachingAllocator of a device seen for the first time;
    // `out_of_memory(error)` returns the exception to raise for an OutOfMemoryError.
    CupyAllocator(nanobind::handle memory_module, CupyState state, nanobind::callable open_device,
                  nanobind::callable out_of_memory);
    CupyAllocator(const CupyAllocator&) = delete;
    CupyAllocator& operator=(const CupyAllocator&) = delete;

    // A new cupy.cuda.MemoryPointer, or null with a Python exception set.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;

    // Gives unused segments of an allocator back, with the caller's stack.
    void empty_cache(allocator::CachingAllocator& allocator) const;

    // Call sites are captured for this session from now on; null ends that.
    void set_session(record::Session* session, bool stacks) noexcept;

    // In the child of a fork: CUDA is gone and the locks may be held for ever.
    void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }

    [[nodiscard]] bool is_direct() const noexcept { return pointer_.is_direct(); }
    [[nodiscard]] std::uint64_t lost_frees() const noexcept { return lost_frees_; }

  private:
    static void* take_allocated(void* self, std::size_t size, int device);
    static void free_callback(void* self, void* address, int device) noexcept;

    [[nodiscard]] allocator::CachingAllocator& allocator(int device);
    [[nodiscard]] record::CallSite call_site() const noexcept;
    [[nodiscard]] PyObject* malloc_on(int device, std::size_t size);
    void free(std::uint64_t address, int device);

    CupyPointer pointer_;
    CupyState state_;
    nanobind::callable open_device_;
    nanobind::callable out_of_memory_;
    std::array<allocator::CachingAllocator*, record::Session::max_devices> allocators_{};
    record::Session* session_ = nullptr;
    bool stacks_ = true;
    std::uint64_t allocated_ = 0;  // handed from malloc_on() to take_allocated(), under the GIL
    std::uint64_t lost_frees_ = 0;
    std::atomic<bool> abandoned_{false};
};

}  // namespace gpuviz::cupy
