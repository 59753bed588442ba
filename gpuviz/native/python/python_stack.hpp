#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>

#include "record/frame_layout.hpp"
#include "record/stack_walker.hpp"

namespace gpuviz::python {

// Captures the Python frames of the calling thread, innermost first.
//
// Constructed and destroyed with the GIL held; a capture needs it only for new stacks. A capture
// returns 0 on a thread unknown to Python and while the interpreter finalizes. It preserves a set
// exception and, with the method "frames", runs no Python code, so it is safe inside tp_dealloc.
// The walker owns every code object that it has added to a table.
class PythonStackWalker final : public record::StackWalker {
  public:
    static constexpr std::size_t depth_limit = 256;

    // Captures `max_depth` frames, at most depth_limit; see OuterFrames for deeper stacks. A layout
    // is used only if its results agree with frame objects.
    PythonStackWalker(std::size_t max_depth, std::optional<record::FrameLayout> layout);
    // The layout of the running interpreter; nothing if unknown.
    [[nodiscard]] static std::optional<record::FrameLayout> own_layout() noexcept;
    PythonStackWalker(const PythonStackWalker&) = delete;
    PythonStackWalker& operator=(const PythonStackWalker&) = delete;
    ~PythonStackWalker() override;

    [[nodiscard]] std::uint32_t capture(record::StackTable& table) noexcept override;
    // "frames": reads CPython's internal frames. "attributes": walks frame objects, which is
    // slower, for a CPython whose layout is unknown or unexpected.
    [[nodiscard]] const char* method() const noexcept override {
        return layout_ ? "frames" : "attributes";
    }

  private:
    void own(std::span<const record::StackFrame> frames) noexcept;

    std::size_t max_depth_;
    int (*is_finalizing_)();
    std::optional<record::FrameLayout> layout_;
    std::unordered_set<std::uint64_t> codes_;
};

}  // namespace gpuviz::python
