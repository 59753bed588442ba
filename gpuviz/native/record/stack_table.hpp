#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "record/modules.hpp"

namespace gpuviz::record {

// The address of a code object, and the byte offset of its current instruction; or 0, and a number
// of frames left out; or a StackMark, and its value.
struct StackFrame {
    std::uint64_t code;
    std::int64_t instruction;

    bool operator==(const StackFrame&) const = default;
};

// What may follow the outermost frame of a stack, in this order.
enum class StackMark : std::uint64_t {
    module = 1,    // a number of Modules: a module that is being called, the innermost first
    backward = 2,  // work of a backward pass: the stack whose forward work it undoes; 0: unknown
};

[[nodiscard]] constexpr bool is_mark(const StackFrame& frame, StackMark mark) noexcept {
    return frame.code == std::uint64_t(mark);
}
// The frames without the marks behind them.
[[nodiscard]] constexpr std::span<const StackFrame> without_marks(
    std::span<const StackFrame> stack) noexcept {
    while (!stack.empty() && (is_mark(stack.back(), StackMark::module) ||
                              is_mark(stack.back(), StackMark::backward))) {
        stack = stack.first(stack.size() - 1);
    }
    return stack;
}

// Assigns equal call stacks the same id. Thread-safe, without the GIL.
//
// Frames are innermost first. The table stores addresses only; the caller owns the code objects, so
// that an address identifies the same code during the lifetime of the table. A stack captured by a
// thread that could not own them is unowned until intern() finds it again, or its frames are
// forgotten. Then only intern_unowned() finds it, so that a loop does not add it each time.
class StackTable {
  public:
    struct Interned {
        std::uint32_t id;  // 1, 2, ...; 0: empty, or the table is full
        bool is_new;       // the caller must own its code objects
    };

    // At most `max_stacks` stacks with 32 frames each on average (16 bytes a frame).
    explicit StackTable(std::size_t max_stacks);

    [[nodiscard]] Interned intern(std::span<const StackFrame> frames) noexcept;
    // For a caller that cannot own the code of the stack of a thread, which `thread` identifies.
    // `is_new`: somebody should own it soon.
    [[nodiscard]] Interned intern_unowned(std::span<const StackFrame> frames,
                                          const void* thread) noexcept;
    struct Unowned {
        std::uint32_t id;
        const void* thread;
    };
    [[nodiscard]] std::vector<Unowned> unowned() const;
    // Forgets the innermost `count` frames of an unowned stack, of which only the number stays; the
    // caller must own the code of the others.
    void forget_inner(std::uint32_t id, std::size_t count) noexcept;
    // Forgets the frames of unowned stacks, of which only their number stays. Returns size(); later
    // stacks may be unowned again.
    std::size_t settle() noexcept;
    // The id of a known stack; 0 if unknown or unowned.
    [[nodiscard]] std::uint32_t find(std::span<const StackFrame> frames) noexcept;

    // Identifies the table among all of the process, the deleted ones included; from 1 on.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

    // Whether the code of a stack's frames may vanish, so that they must not be in another stack.
    [[nodiscard]] bool is_unowned(std::uint32_t id) const noexcept {
        const std::lock_guard lock(mutex_);
        return !is_owned(id);
    }

    // The modules that stacks are in.
    [[nodiscard]] Modules& modules() noexcept { return modules_; }
    [[nodiscard]] const Modules& modules() const noexcept { return modules_; }

    // Needs 1 <= id <= size().
    [[nodiscard]] std::vector<StackFrame> frames(std::uint32_t id) const;

    [[nodiscard]] std::size_t size() const noexcept;
    // The number of captures with id 0 because the table was full.
    [[nodiscard]] std::uint64_t dropped() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;

  private:
    struct Slot {
        std::uint64_t hash;
        std::uint32_t id;  // 0: free
    };

    // The functions below need the lock.
    void forget(std::uint32_t id, std::size_t count) noexcept;
    [[nodiscard]] std::span<const StackFrame> frames_of(std::uint32_t id) const noexcept;
    enum class Forgotten : bool { skip, find };
    [[nodiscard]] std::size_t slot_of(std::uint64_t hash, std::span<const StackFrame> frames,
                                      Forgotten forgotten) const noexcept;
    [[nodiscard]] Interned add(std::span<const StackFrame> frames, Forgotten forgotten) noexcept;
    [[nodiscard]] bool is_owned(std::uint32_t id) const noexcept;
    void grow();

    const std::uint64_t number_;
    Modules modules_;
    mutable std::mutex mutex_;
    std::size_t max_stacks_;
    std::vector<Slot> slots_;          // open addressing, a power of two, at most half full
    std::vector<std::uint64_t> ends_;  // stack `id` is frames_[ends_[id - 1], ends_[id])
    std::vector<StackFrame> frames_;
    std::vector<Unowned> unowned_;  // few: nobody waits long to own its frames
    std::unordered_map<std::uint32_t, std::size_t> forgotten_;  // innermost frames, by stack
    std::uint64_t dropped_ = 0;
};

}  // namespace gpuviz::record
