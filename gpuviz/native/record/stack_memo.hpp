#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/frame_layout.hpp"
#include "record/stack_table.hpp"

namespace gpuviz::record {

// The call stacks that one thread captured last, with their ids in a table.
//
// Loops capture the same stacks: a few, or some hundreds in a training step. The interpreter then
// has the same frames at the same addresses, at the same instructions; checking that takes a
// fraction of the time of reading them and searching the table. The stack captured last with the
// same innermost frame is checked first: it is the current one in a loop, though not if a library's
// function is called from many places, which are told apart by more frames. Layers that one line
// calls in turn have the same frames, and are told apart by their modules. For the calling thread
// only.
class StackMemo {
  public:
    // The id of the thread's current stack in `table`; 0 if it is not remembered.
    [[nodiscard]] std::uint32_t find(const FrameLayout& layout, const void* thread_state,
                                     const StackTable& table) noexcept;
    // Remembers the id of the current stack, of which the table has `depth` frames. Does nothing if
    // that is not all of them, if they are too many, or without memory.
    void remember(const FrameLayout& layout, const void* thread_state, const StackTable& table,
                  std::uint32_t id, std::size_t depth) noexcept;

    static constexpr std::size_t most_frames = 256;

  private:
    // The table's owner keeps the code of all frames alive, so that an instruction's address
    // identifies it.
    struct Frame {
        std::uint64_t address;
        std::uint64_t instruction;

        bool operator==(const Frame&) const = default;
    };
    // A module that is being called.
    struct Call {
        std::uint64_t frame;
        std::uint64_t module;
        std::uint32_t number;  // in Modules
    };
    struct Stack {
        std::uint64_t table = 0;  // StackTable::number(); 0: none
        std::uint64_t code = 0;   // Modules::code()
        std::uint64_t hash = 0;   // of its innermost frames
        std::uint32_t generation = 0;
        std::uint32_t id = 0;
        std::vector<Call> calls;
        std::vector<Frame> frames;  // innermost first, the interpreter's own included; ends with 0
    };

    static constexpr std::size_t most_stacks_log2 = 12;
    static constexpr std::size_t most_stacks = std::size_t{1} << most_stacks_log2;

    // How many frames tell stacks apart; of those that agree in them, the last one is remembered.
    static constexpr std::size_t most_hashed = 32;

    [[nodiscard]] static bool is_current(const FrameLayout& layout, const Stack& stack) noexcept;
    // Whether the calls in the frames of a current stack are of its modules.
    [[nodiscard]] static bool has_modules(const FrameLayout& layout, Stack& stack,
                                          const Modules& modules) noexcept;
    [[nodiscard]] std::uint32_t find_with_modules(const FrameLayout& layout,
                                                  const StackTable& table, Stack& stack,
                                                  std::uint16_t& latest) noexcept;
    // The hash of its frames, and of the modules that they call now.
    [[nodiscard]] static std::uint64_t hash_with_modules(const FrameLayout& layout,
                                                         const Stack& stack) noexcept;
    [[nodiscard]] static std::uint64_t hash_of(std::uint64_t hash, const Frame& frame) noexcept;
    [[nodiscard]] static std::size_t place_of(std::uint64_t hash) noexcept;

    // Both have most_stacks elements, or none before the first stack.
    // By the hash of the innermost frames, and again by that of the frames and modules.
    std::vector<Stack> stacks_;
    std::vector<std::uint16_t>
        latest_;  // places in stacks_, by the hash of the innermost one alone
};

}  // namespace gpuviz::record
