#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "record/frame_layout.hpp"
#include "record/memory_reader.hpp"

namespace gpuviz::python {

// Owner of the code objects of frames, so that no other object gets their addresses. Also remembers
// what code looked like that was seen without the GIL, and so could not be owned.
//
// Thread-safe.
class OwnedCode {
  public:
    OwnedCode() = default;
    OwnedCode(const OwnedCode&) = delete;
    OwnedCode& operator=(const OwnedCode&) = delete;

    // Owns the code of frames, which must be alive. Requires the GIL.
    void own(std::span<const record::StackFrame> frames) noexcept;
    // Ends the ownership of all code. Requires the GIL, and an interpreter that does not finalize.
    void release() noexcept;
    // Whether it owns the code of all frames, else remembers what the others look like, which
    // `memory` reads.
    [[nodiscard]] bool owns_or_remembers(std::span<const record::StackFrame> frames,
                                         record::MemoryReader& memory) noexcept;
    // Whether code that is owned or remembered is still there. Requires the GIL. `memory` is null
    // if no memory can be read.
    [[nodiscard]] bool is_alive(std::uint64_t code, record::MemoryReader* memory) noexcept;

  private:
    std::mutex mutex_;  // guards the next two; nobody who holds it waits for the GIL
    std::unordered_set<std::uint64_t> owned_;
    std::unordered_map<std::uint64_t, std::uint64_t> seen_;  // code that is not owned: its looks
};

}  // namespace gpuviz::python
