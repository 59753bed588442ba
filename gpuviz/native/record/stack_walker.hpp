#pragma once

#include <cstdint>
#include <span>

#include "record/stack_table.hpp"

namespace gpuviz::record {

// Captures the call stack of the calling thread. Implementations: Python's, and fixed ones in
// tests.
//
// A walker keeps the objects at its addresses alive, so it must outlive all reads of the tables
// that it fills.
class StackWalker {
  public:
    virtual ~StackWalker() = default;
    // The id of the stack in `table`; 0 if there is none or it cannot be captured now. Any thread,
    // with or without the GIL; a new stack acquires the GIL.
    [[nodiscard]] virtual std::uint32_t capture(StackTable& table) noexcept = 0;
    // The same without ever waiting for the GIL, for callers that hold a lock which a thread with
    // the GIL may wait for. A new stack is unowned unless the caller holds the GIL; most are owned
    // as soon as the caller runs Python code or captures again.
    [[nodiscard]] virtual std::uint32_t capture_without_waiting(StackTable& table) noexcept = 0;
    // The id of a stack that somebody else has captured; 0: unknown. Requires the GIL.
    virtual std::uint32_t add(StackTable&, std::span<const StackFrame>) noexcept { return 0; }
    // Owns the unowned stacks that their threads are still in. Requires the GIL.
    virtual void own_running(StackTable& table) noexcept = 0;
    // The object in the first local variable of a frame object that runs; null if there is none or
    // it is unknown. Requires the GIL.
    [[nodiscard]] virtual const void* first_local_of(const void*) const noexcept { return nullptr; }
    // The method of reading the stack, for status displays.
    [[nodiscard]] virtual const char* method() const noexcept = 0;

    // The following observe a thread from another one, without the GIL and without stopping it.

    // Whether that is possible.
    [[nodiscard]] virtual bool can_observe() const noexcept { return false; }
    // Identifies the calling thread for stack_of(); null if it has no stack.
    [[nodiscard]] virtual const void* calling_thread() noexcept { return nullptr; }
    // The id of a thread's stack in `table`; 0 if there is none or it cannot be read. Without the
    // innermost frames if these changed meanwhile. From one thread at a time.
    [[nodiscard]] virtual std::uint32_t stack_of(const void*, StackTable&) noexcept { return 0; }
    // Whether a thread that waits for an address waits for the GIL.
    [[nodiscard]] virtual bool is_gil(std::uint64_t) const noexcept { return false; }
    // Helps gil_holder() to find it; after a few calls from threads that take turns, it does.
    // Requires the GIL.
    virtual void learn_gil() noexcept {}
    // The operating system's id of the thread that had the GIL last; 0: unknown.
    [[nodiscard]] virtual std::uint32_t gil_holder() noexcept { return 0; }
};

}  // namespace gpuviz::record
