#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "record/stack_table.hpp"

namespace gpuviz::record {

// The byte offsets of a thread's frames in CPython's private structures.
struct FrameLayout {
    std::size_t thread_frame;                 // PyThreadState: the current frame, or the _PyCFrame
    std::optional<std::size_t> cframe_frame;  // _PyCFrame: the current frame (3.11, 3.12)
    std::size_t previous;                     // _PyInterpreterFrame, this and the next three
    std::size_t code;
    std::size_t instruction;
    std::size_t owner;
    std::size_t code_start;       // PyCodeObject: the first instruction
    std::size_t first_traceable;  // PyCodeObject: how many code units precede the first line

    bool operator==(const FrameLayout&) const = default;
};

// The layout of a CPython by Py_Version; nothing if unknown. From 3.13 on the interpreter contains
// it: `debug_offsets` are the words at the start of _PyRuntime, or null.
[[nodiscard]] std::optional<FrameLayout> known_layout(std::uint64_t version,
                                                      const std::uint64_t* debug_offsets) noexcept;

// Fills `frames`, innermost first, from a PyThreadState with the GIL held; returns their number.
// Omits the interpreter's own frames and those that have not started; see OuterFrames for stacks
// that do not fit.
[[nodiscard]] std::size_t read_frames(const FrameLayout& layout, const void* thread_state,
                                      std::span<StackFrame> frames) noexcept;

}  // namespace gpuviz::record
