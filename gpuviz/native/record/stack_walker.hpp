#pragma once

#include <cstdint>

#include "record/stack_table.hpp"

namespace gpuviz::record {

// Captures the call stack of the calling thread. Implementations: Python's, and fixed ones in
// tests.
//
// A walker keeps what its addresses mean alive, so it must not die before the tables it fills are
// last read.
class StackWalker {
  public:
    virtual ~StackWalker() = default;
    // The id of the stack in `table`; 0 when there is none or it cannot be taken now. Any thread,
    // with or without the GIL; a stack that is new takes the GIL.
    [[nodiscard]] virtual std::uint32_t capture(StackTable& table) noexcept = 0;
    // How the stack is read, for status displays.
    [[nodiscard]] virtual const char* method() const noexcept = 0;
};

}  // namespace gpuviz::record
