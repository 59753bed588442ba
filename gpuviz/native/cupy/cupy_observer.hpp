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

// An allocator for cupy.cuda.set_allocator that leaves allocating to the program's own one and
// records what it does.
//
// Each pointer that the program's allocator returns is held here and a pointer to the same memory
// is handed out instead, whose end is recorded before the held one is let go. The GIL is held
// throughout. It keeps itself, and the program's allocator, while pointers that it handed out live;
// not longer, since a pool that the program drops gives its memory back.
class CupyObserver {
  public:
    // `total_bytes()` tells what the program's pool holds of the current device, or is None where
    // that cannot be known; segments are recorded only with it. `out_of_memory(error, device,
    // size)`, if not None, is told of each failure after it was recorded, and must not raise.
    CupyObserver(nanobind::handle memory_module, CupyState state, nanobind::callable allocator,
                 nanobind::object total_bytes, nanobind::object out_of_memory);
    CupyObserver(const CupyObserver&) = delete;
    CupyObserver& operator=(const CupyObserver&) = delete;

    // A new cupy.cuda.MemoryPointer, or null with a Python exception set, the program's own.
    [[nodiscard]] PyObject* malloc(PyObject* size) noexcept;

    // Events go to this session from now on; null ends that.
    void set_session(record::Session* session, bool stacks);

    [[nodiscard]] std::vector<int> devices() const;

    // In the child of a fork: nothing is recorded, memory still goes back to its allocator.
    void abandon() noexcept { session_ = nullptr; }

  private:
    static void* take_allocated(void* self, std::size_t size, int device);
    static void free_callback(void* self, void* address, int device) noexcept;

    [[nodiscard]] nanobind::object observe(nanobind::object pointer, std::size_t requested_size);
    [[nodiscard]] record::ObservedPool& pool(int device);
    [[nodiscard]] record::CallSite call_site() const noexcept;
    [[nodiscard]] std::uint64_t pool_bytes() const;

    CupyPointer pointer_;
    CupyState state_;
    nanobind::callable allocator_;
    nanobind::object total_bytes_;
    nanobind::object out_of_memory_;
    // What the program's allocator returned, by address; two pointers may name one address.
    std::unordered_multimap<std::uint64_t, nanobind::object> held_;
    nanobind::object self_;  // while anything is held
    std::unordered_map<int, record::ObservedPool> pools_;
    record::Session* session_ = nullptr;
    bool stacks_ = true;
    std::uint64_t allocated_ = 0;
};

}  // namespace gpuviz::cupy
