#pragma once

#include <cstdint>

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
    // The method of reading the stack, for status displays.
    [[nodiscard]] virtual const char* method() const noexcept = 0;
};

}  // namespace gpuviz::record
