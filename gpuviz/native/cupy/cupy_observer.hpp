#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cupy/cupy_pointer.hpp"
#include "cupy/cupy_state.hpp"
#include "record/observed_pool.hpp"
#include "record/session.hpp"

namespace gpuviz::cupy {

// An allocator for cupy.cuda.set_allocator that forwards to the program's own allocator and records
// its allocations and frees.
//
// It keeps each pointer that the program's allocator returns, and returns another pointer to the
// same memory. When that pointer is deleted, the free is recorded before the original is released.
// The GIL is held throughout. The observer keeps itself and the program's allocator alive only
// while such pointers exist, so that a pool deleted by the program releases its memory.
class CupyObserver {
  public:
    static constexpr const char* name = "malloc";
    static constexpr const char* docstring =
        "malloc(size)\n--\n\n"
        "Return `size` bytes from the program's own allocator as a cupy.cuda.MemoryPointer.\n";

    // `total_bytes()` returns the bytes that the program's pool holds on the current device; if it
    // is None, no segments are recorded. `total_bytes_of(memory)`, if not None, returns such a
    // function for the device of a memory of that pool, or None; it is called once a device.
    // `out_of_memory(error, device, size)`, if not None, is called after each failure is recorded,
    // and must not raise.
    CupyObserver(nanobind::handle memory_module, CupyState state, nanobind::callable allocator,
                 nanobind::object total_bytes, nanobind::object total_bytes_of,
                 nanobind::object out_of_memory);
    CupyObserver(const CupyObserver&) = delete;
    CupyObserver& operator=(const CupyObserver&) = delete;

    // A new cupy.cuda.MemoryPointer, or null with a Python exception set, the program's own.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;

    // Sends events to this session; null ends this.
    void set_session(record::Session* session, bool stacks);

    [[nodiscard]] std::vector<int> devices() const;

    // To be called in the child of a fork: stops recording; memory is still freed.
    void abandon() noexcept { session_ = nullptr; }

  private:
    static void* take_allocated(void* self, std::size_t size, int device);
    static void free_callback(void* self, void* address, int device) noexcept;

    struct Pool {
        record::ObservedPool observed;
        nanobind::object total_bytes;  // the result of total_bytes_of(); not valid before its call
    };

    [[nodiscard]] nanobind::object observe(nanobind::object pointer, std::size_t requested_size,
                                           const record::CallSite& site);
    [[nodiscard]] Pool& pool(int device);
    [[nodiscard]] record::CallSite call_site() const noexcept;
    // The current size of the pool with this function; without one, of the current device's.
    [[nodiscard]] std::uint64_t total_bytes(const nanobind::object& of_device) const;

    CupyPointer pointer_;
    CupyState state_;
    nanobind::callable allocator_;
    nanobind::object total_bytes_;
    nanobind::object total_bytes_of_;
    nanobind::object out_of_memory_;
    // The pointers of the program's allocator, by address; two may have the same address.
    std::unordered_multimap<std::uint64_t, nanobind::object> held_;
    nanobind::object self_;  // while anything is held
    std::unordered_map<int, Pool> pools_;
    record::Session* session_ = nullptr;
    bool stacks_ = true;
    std::uint64_t allocated_ = 0;
};

}  // namespace gpuviz::cupy
