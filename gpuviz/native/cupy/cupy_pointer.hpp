#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuviz::cupy {

// Builds cupy.cuda.MemoryPointer objects over CFunctionAllocatorMemory, the class by which CuPy
// calls a C function when the last reference to some memory goes.
//
// Calling the two classes costs more than allocating does, so their fields are written directly
// where a sample object, made by CuPy itself, shows unmistakably where they lie; `is_direct()`
// tells. Otherwise CuPy's own CFunctionAllocator builds them. The GIL is held throughout.
class CupyPointer {
  public:
    using Free = void (*)(void* owner, void* address, int device);
    using Malloc = void* (*)(void* owner, std::size_t size, int device);

    // `memory_module` is cupy.cuda.memory. `owner` is handed to both functions and must outlive
    // every pointer; `malloc` returns the memory that make() was just given.
    CupyPointer(nanobind::handle memory_module, void* owner, Malloc malloc, Free free);

    // A new reference; null with a Python exception set when Python is out of memory.
    [[nodiscard]] PyObject* make(std::uint64_t address, std::size_t size, int device) const;

    [[nodiscard]] bool is_direct() const noexcept { return layout_.has_value(); }

  private:
    // Byte offsets in CFunctionAllocatorMemory and MemoryPointer.
    struct Layout {
        std::size_t address, size, device, owner, free;
        std::size_t pointer_address, pointer_device, pointer_memory;
    };
    static std::optional<Layout> find_layout(nanobind::handle memory_module);

    nanobind::object memory_type_;
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
