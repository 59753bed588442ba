#pragma once

#include <cstddef>
#include <span>

#include "record/frame_layout.hpp"

// Frame objects show the frames of any CPython. To walk its internal frames is faster, but right
// only if both show the same. Everything here requires the GIL.
namespace gpuviz::python {

// Reads the frames of the calling thread, innermost first, and returns how many. Preserves a set
// exception.
std::size_t read_frame_objects(std::span<record::StackFrame> frames) noexcept;

// Whether internal frames of the layout are those that frame objects show, in a chain of calls
// through a generator.
[[nodiscard]] bool has_same_frames(const record::FrameLayout& layout);
// Whether the first local variables are as well.
[[nodiscard]] bool has_same_locals(const record::FrameLayout& layout);

}  // namespace gpuviz::python
