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

// The callable for cupy.cuda.set_allocator, with one CachingAllocator per device.
//
// CuPy calls malloc() and free with the GIL held. They first try the allocator without waiting, and
// release the GIL before waiting for its lock or the device, because a host callback of CUDA may
// need the GIL for the device to finish. Never destroyed after the first allocation, because arrays
// may outlive everything.
class CupyAllocator {
  public:
    static constexpr const char* name = "malloc";
    static constexpr const char* docstring =
        "malloc(size)\n--\n\n"
        "Return `size` bytes on the current device, for the current stream, as a\n"
        "cupy.cuda.MemoryPointer. Made for `cupy.cuda.set_allocator(gpuviz.malloc)`;\n"
        "`gpuviz.record` does that by itself.\n\n"
        "Raises:\n"
        "    cupy.cuda.memory.OutOfMemoryError: The device has too little memory left.\n"
        "    DeviceUnavailableError: There is no CuPy or no usable driver.\n";

    // `open_device(ordinal)` returns the CachingAllocator of a device seen for the first time;
    // `out_of_memory(error)` returns the exception to raise for an OutOfMemoryError.
    CupyAllocator(nanobind::handle memory_module, CupyState state, nanobind::callable open_device,
                  nanobind::callable out_of_memory);
    CupyAllocator(const CupyAllocator&) = delete;
    CupyAllocator& operator=(const CupyAllocator&) = delete;

    // A new cupy.cuda.MemoryPointer, or null with a Python exception set.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;

    // Releases the unused segments of an allocator, recorded with the caller's stack.
    void empty_cache(allocator::CachingAllocator& allocator) const;

    // Captures call sites for this session; null ends this.
    void set_session(record::Session* session, bool stacks) noexcept;

    // To be called in the child of a fork, where CUDA is unusable and locks may be held forever.
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
    std::uint64_t allocated_ = 0;  // from malloc_on() to take_allocated(), with the GIL held
    std::uint64_t lost_frees_ = 0;
    std::atomic<bool> abandoned_{false};
};

}  // namespace gpuviz::cupy
