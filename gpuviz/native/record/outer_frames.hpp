#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "record/stack_table.hpp"

namespace gpuviz::record {

// Collects the outer frames of a stack that does not fit into a full buffer, innermost first.
//
// The buffer keeps the innermost and the outermost half of the stack, because the user's frames are
// usually the outermost, and between them a frame without code whose instruction is the number of
// frames left out. Buffers of fewer than four frames keep the innermost only.
class OuterFrames {
  public:
    static constexpr std::size_t most_frames = 100'000;

    explicit OuterFrames(std::span<StackFrame> buffer) noexcept
        : buffer_(buffer), inner_((buffer.size() - 1) / 2) {}

    // Whether push() may be called again.
    [[nodiscard]] bool wants_more() const noexcept {
        return buffer_.size() >= 4 && pushed_ < most_frames;
    }
    void push(StackFrame frame) noexcept {
        outer()[pushed_ % outer().size()] = frame;
        ++pushed_;
    }
    // To be called once, at the end.
    void finish() noexcept {
        if (pushed_ == 0) {
            return;
        }
        const std::span<StackFrame> kept = outer();
        const auto oldest = std::ptrdiff_t(pushed_ % kept.size());
        std::rotate(kept.begin(), kept.begin() + oldest, kept.end());
        buffer_[inner_] = {0, std::int64_t(pushed_ + 1)};
    }

  private:
    [[nodiscard]] std::span<StackFrame> outer() const noexcept {
        return buffer_.subspan(inner_ + 1);
    }

    std::span<StackFrame> buffer_;
    std::size_t inner_;
    std::size_t pushed_ = 0;
};

}  // namespace gpuviz::record
