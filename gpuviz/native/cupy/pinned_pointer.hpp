#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuviz::cupy {

// Creates cupy.cuda.PinnedMemoryPointer objects. Calling the class costs as much as an allocation:
// its fields are written directly if a sample object shows their offsets; see CupyPointer. The GIL
// is held throughout.
class PinnedPointer {
  public:
    // `type` is cupy.cuda.PinnedMemoryPointer.
    explicit PinnedPointer(nanobind::object type);

    // A new pointer to the begin of `memory`, an object with `ptr` and `size`; null with a Python
    // exception set if that fails.
    [[nodiscard]] PyObject* make(nanobind::object memory, std::uint64_t address) const;

    // The `ptr` and `size()` of a pointer. Throws nanobind::python_error if it has none.
    struct Target {
        std::uint64_t address;
        std::uint64_t size;
    };
    [[nodiscard]] Target target_of(nanobind::handle pointer) const;

    // Whether pointers are written directly, not by CuPy's constructor.
    [[nodiscard]] bool is_direct() const noexcept { return layout_.has_value(); }

  private:
    // Byte offsets in PinnedMemoryPointer.
    struct Layout {
        std::size_t memory, address;
    };
    static std::optional<Layout> find_layout(nanobind::handle type);

    nanobind::object type_;
    nanobind::object no_arguments_;
    nanobind::object ptr_;  // interned names
    nanobind::object size_;
    newfunc new_;
    std::optional<Layout> layout_;
};

}  // namespace gpuviz::cupy
