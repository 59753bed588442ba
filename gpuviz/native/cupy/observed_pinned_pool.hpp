#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "cupy/pinned_pointer.hpp"
#include "record/pinned_observer.hpp"

namespace gpuviz::cupy {

// The `mem` of a cupy.cuda.PinnedMemoryPointer that a program gets while its pool is observed. Its
// free is recorded before the memory returns to the pool. `observer` is a PinnedObserver.
class ObservedPinnedMemory {
  public:
    ObservedPinnedMemory(nanobind::object observer, nanobind::object held, std::uint64_t address,
                         std::uint64_t size) noexcept;
    ObservedPinnedMemory(const ObservedPinnedMemory&) = delete;
    ObservedPinnedMemory& operator=(const ObservedPinnedMemory&) = delete;
    ~ObservedPinnedMemory();

    [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  private:
    nanobind::object observer_;
    nanobind::object held_;
    std::uint64_t address_;
    std::uint64_t size_;
};

// An allocator for cupy.cuda.set_pinned_memory_allocator that forwards to the program's own pool
// and records its allocations and frees. The GIL is held throughout.
class ObservedPinnedPool {
  public:
    static constexpr const char* name = "malloc";
    static constexpr const char* docstring =
        "malloc(size)\n--\n\n"
        "Return `size` bytes of the program's pool as a cupy.cuda.PinnedMemoryPointer.\n";

    // `observer` is a PinnedObserver, `allocator` the pool's function and `pointer_type`
    // cupy.cuda.PinnedMemoryPointer.
    ObservedPinnedPool(nanobind::object observer, nanobind::callable allocator,
                       nanobind::object pointer_type);

    // A new PinnedMemoryPointer, or null with a Python exception set, the program's own.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;

  private:
    nanobind::object observer_;
    nanobind::callable allocator_;
    PinnedPointer pointer_;
};

}  // namespace gpuviz::cupy
