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
// Made and destroyed with the GIL held, which a capture needs only for a stack that is new. It
// gives 0 on a thread that Python does not know. A capture never touches an exception that is set,
// and with the walk "frames" runs no Python code at all, so it may happen inside tp_dealloc; it
// gives 0 while the interpreter finalizes. The walker owns every code object it ever put into a
// table.
class PythonStackWalker final : public record::StackWalker {
  public:
    static constexpr std::size_t depth_limit = 256;

    // Of deeper stacks the innermost `max_depth` frames are taken, at most depth_limit. A layout is
    // used only if it finds what frame objects tell.
    PythonStackWalker(std::size_t max_depth, std::optional<record::FrameLayout> layout);
    // The layout of the running interpreter; nothing if it is not known.
    [[nodiscard]] static std::optional<record::FrameLayout> own_layout() noexcept;
    PythonStackWalker(const PythonStackWalker&) = delete;
    PythonStackWalker& operator=(const PythonStackWalker&) = delete;
    ~PythonStackWalker() override;

    [[nodiscard]] std::uint32_t capture(record::StackTable& table) noexcept override;
    // "frames": CPython's own frames are read in place. "attributes": a slower walk over frame
    // objects, on a CPython whose layout is not known or not as expected.
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
