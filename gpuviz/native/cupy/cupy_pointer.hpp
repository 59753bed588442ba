#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuviz::cupy {

// Creates cupy.cuda.MemoryPointer objects with CFunctionAllocatorMemory, CuPy's class that calls a
// C function when the last reference to the memory is deleted.
//
// Calling the two classes costs more than an allocation. Their fields are therefore written
// directly if a sample object created by CuPy shows their offsets unambiguously; `is_direct()`
// returns whether it does. Otherwise CuPy's CFunctionAllocator creates them. The GIL is held
// throughout.
class CupyPointer {
  public:
    using Free = void (*)(void* owner, void* address, int device);
    using Malloc = void* (*)(void* owner, std::size_t size, int device);

    // `memory_module` is cupy.cuda.memory. `owner` is passed to both functions and must outlive
    // every pointer; `malloc` returns the address that was passed to make().
    CupyPointer(nanobind::handle memory_module, void* owner, Malloc malloc, Free free);

    // A new reference; null with a Python exception set when Python is out of memory.
    [[nodiscard]] PyObject* make(std::uint64_t address, std::size_t size, int device) const;

    // What a MemoryPointer of any allocator points to, with its `mem`.
    struct Target {
        std::uint64_t address;
        std::uint64_t size;
        int device;
        nanobind::object memory;
    };
    // Throws nanobind::python_error if an attribute is missing or of another type.
    [[nodiscard]] Target target_of(nanobind::handle pointer) const;

    [[nodiscard]] bool is_direct() const noexcept { return layout_.has_value(); }

  private:
    // Byte offsets in CFunctionAllocatorMemory and MemoryPointer.
    struct Layout {
        std::size_t address, size, device, owner, free;
        std::size_t pointer_address, pointer_device, pointer_memory;
    };
    static std::optional<Layout> find_layout(nanobind::handle memory_module);
    // Whether the fields of `memory`, of any class, are at the offsets of the layout.
    [[nodiscard]] bool has_known_fields(PyObject* memory) const noexcept;

    nanobind::object memory_type_;
    nanobind::object base_type_;  // BaseMemory
    nanobind::object pointer_type_;
    nanobind::object malloc_;  // CFunctionAllocator(...).malloc
    nanobind::object no_arguments_;
    newfunc new_memory_;
    newfunc new_pointer_;
    void* owner_;
    Free free_;
    std::optional<Layout> layout_;
};

}  // namespace gpuviz::cupy
