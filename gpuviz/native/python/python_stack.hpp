#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "python/gil_observer.hpp"
#include "python/owned_code.hpp"
#include "record/frame_layout.hpp"
#include "record/memory_reader.hpp"
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
    [[nodiscard]] std::uint32_t capture_without_waiting(
        record::StackTable& table) noexcept override;
    std::uint32_t add(record::StackTable& table,
                      std::span<const record::StackFrame> frames) noexcept override;
    void own_running(record::StackTable& table) noexcept override;
    [[nodiscard]] const void* first_local_of(const void* frame) const noexcept override;
    // "frames": reads CPython's internal frames. "attributes": walks frame objects, which is
    // slower, for a CPython whose layout is unknown or unexpected.
    [[nodiscard]] const char* method() const noexcept override {
        return layout_ ? "frames" : "attributes";
    }
    [[nodiscard]] bool can_observe() const noexcept override { return observer_ != nullptr; }
    [[nodiscard]] const void* calling_thread() noexcept override;
    [[nodiscard]] std::uint32_t stack_of(const void* thread,
                                         record::StackTable& table) noexcept override;
    [[nodiscard]] bool is_gil(std::uint64_t address) const noexcept override {
        return observer_ != nullptr && observer_->gil.contains(address);
    }
    void learn_gil() noexcept override {
        if (observer_ != nullptr) {
            observer_->gil.learn();
        }
    }
    [[nodiscard]] std::uint32_t gil_holder() noexcept override {
        return observer_ == nullptr ? 0 : observer_->gil.holder(observer_->memory);
    }

  private:
    // Of more modules that call each other, the innermost ones count.
    static constexpr std::size_t most_modules = 64;

    using Buffer = std::array<record::StackFrame, depth_limit + most_modules>;

    // The id of the thread's stack if it is known, else 0 and its frames.
    [[nodiscard]] std::uint32_t find(const void* thread, record::StackTable& table, Buffer& buffer,
                                     std::span<record::StackFrame>& frames) noexcept;
    // Reads the frames of a thread into the buffer, and the modules that they call behind them.
    // `is_new` becomes true if a module has no number yet.
    [[nodiscard]] std::span<record::StackFrame> read(const void* thread, record::StackTable& table,
                                                     Buffer& buffer, bool& is_new) const noexcept;
    // Lets the interpreter call own_waiting() on the main thread soon.
    void own_soon(record::StackTable& table) noexcept;
    static int own_waiting(void* walker) noexcept;

    // What observing other threads needs.
    struct Observer {
        record::MemoryReader memory;
        GilObserver gil;
        Buffer frames;
        Buffer again;
        record::MemoryReader memory_of_code;  // for the thread that has the GIL
    };

    std::size_t max_depth_;
    int (*is_finalizing_)();
    std::optional<record::FrameLayout> layout_;
    OwnedCode code_;                                     // of the frames in tables
    std::atomic<record::StackTable*> waiting_{nullptr};  // for own_waiting()
    std::unique_ptr<Observer> observer_;                 // null: not possible
};

}  // namespace gpuviz::python
