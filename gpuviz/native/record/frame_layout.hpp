#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "record/memory_reader.hpp"
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
    std::size_t locals;           // _PyInterpreterFrame: the first local variable; 0: unknown

    bool operator==(const FrameLayout&) const = default;
};

// The layout of a CPython by Py_Version; nothing if unknown. From 3.13 on the interpreter contains
// it: `debug_offsets` are the words at the start of _PyRuntime, or null.
[[nodiscard]] std::optional<FrameLayout> known_layout(std::uint64_t version,
                                                      const std::uint64_t* debug_offsets) noexcept;

// Memory that does not change while it is read: that of the calling thread's frames, or of any
// thread's with the GIL held. See MemoryReader for others.
struct StableMemory {
    template <typename Value>
    [[nodiscard]] Value load(std::uint64_t address, std::size_t offset) const noexcept {
        return *reinterpret_cast<const Value*>(address + offset);
    }
};

// The following read a PyThreadState, or the frame at an address.

// The address of the current frame, which may be the interpreter's own; 0: none.
template <typename Memory = StableMemory>
[[nodiscard]] inline std::uint64_t innermost_frame(const FrameLayout& layout,
                                                   const void* thread_state,
                                                   Memory&& memory = {}) noexcept {
    const auto frame = memory.template load<std::uint64_t>(
        reinterpret_cast<std::uint64_t>(thread_state), layout.thread_frame);
    return layout.cframe_frame ? memory.template load<std::uint64_t>(frame, *layout.cframe_frame)
                               : frame;
}
template <typename Memory = StableMemory>
[[nodiscard]] inline std::uint64_t previous_of(const FrameLayout& layout, std::uint64_t frame,
                                               Memory&& memory = {}) noexcept {
    return memory.template load<std::uint64_t>(frame, layout.previous);
}
// The address of the current instruction.
template <typename Memory = StableMemory>
[[nodiscard]] inline std::uint64_t instruction_of(const FrameLayout& layout, std::uint64_t frame,
                                                  Memory&& memory = {}) noexcept {
    return memory.template load<std::uint64_t>(frame, layout.instruction);
}
// The address of the code object.
template <typename Memory = StableMemory>
[[nodiscard]] inline std::uint64_t code_of(const FrameLayout& layout, std::uint64_t frame,
                                           Memory&& memory = {}) noexcept {
    // In 3.14 the two lowest bits are flags.
    return memory.template load<std::uint64_t>(frame, layout.code) & ~std::uint64_t{3};
}
// The address of the object in the first local variable.
[[nodiscard]] inline std::uint64_t first_local_of(const FrameLayout& layout,
                                                  std::uint64_t frame) noexcept {
    return StableMemory{}.load<std::uint64_t>(frame, layout.locals) & ~std::uint64_t{3};
}
// Whether the interpreter uses it for itself, and runs no Python code in it.
[[nodiscard]] bool is_interpreters(const FrameLayout& layout, std::uint64_t frame) noexcept;
// Whether the Python code of the frame has reached its first line.
[[nodiscard]] bool has_reached_a_line(const FrameLayout& layout, std::uint64_t frame) noexcept;

// Fills `frames`, innermost first, from a PyThreadState with the GIL held; returns their number.
// Omits the interpreter's own frames and those that have not started; see OuterFrames for stacks
// that do not fit.
[[nodiscard]] std::size_t read_frames(const FrameLayout& layout, const void* thread_state,
                                      std::span<StackFrame> frames) noexcept;
// The same of a thread that may run meanwhile: its frames may be wrong in any way.
[[nodiscard]] std::size_t read_frames(const FrameLayout& layout, const void* thread_state,
                                      MemoryReader& memory, std::span<StackFrame> frames) noexcept;

}  // namespace gpuviz::record
