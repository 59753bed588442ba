#include "record/stack_memo.hpp"

#include <exception>

namespace gpuviz::record {

std::uint32_t StackMemo::find(const FrameLayout& layout, const void* thread_state,
                              const StackTable& table) const noexcept {
    std::uint64_t address = innermost_frame(layout, thread_state);
    if (address == 0 || stacks_.empty()) {
        return 0;
    }
    const Stack& stack = stacks_[place_of({address, instruction_of(layout, address)})];
    if (stack.table != table.number() || stack.frames.front().address != address) {
        return 0;
    }
    // An address is read only after the frame below it has confirmed it. The processor predicts
    // that it will, so unlike a walk along the chain, the reads do not wait for each other.
    for (const Frame* frame = stack.frames.data(); frame->address != 0; ++frame) {
        const bool same = (instruction_of(layout, frame->address) == frame->instruction) &
                          (previous_of(layout, frame->address) == frame[1].address);
        if (!same) {
            return 0;
        }
    }
    return stack.id;
}

void StackMemo::remember(const FrameLayout& layout, const void* thread_state,
                         const StackTable& table, std::uint32_t id, std::size_t depth) noexcept {
    std::uint64_t address = innermost_frame(layout, thread_state);
    // Whether another frame is captured also depends on more than its address and instruction.
    if (address == 0 || is_interpreters(layout, address) || !has_reached_a_line(layout, address)) {
        return;
    }
    try {
        if (stacks_.empty()) {
            stacks_.resize(most_stacks);
        }
        Stack& stack = stacks_[place_of({address, instruction_of(layout, address)})];
        stack.table = 0;
        stack.frames.clear();
        std::size_t seen = 0;
        for (; address != 0; address = previous_of(layout, address)) {
            if (stack.frames.size() == most_frames) {
                return;
            }
            stack.frames.push_back({address, instruction_of(layout, address)});
            seen += !is_interpreters(layout, address);
        }
        if (seen != depth) {
            return;
        }
        stack.frames.push_back({0, 0});
        stack.table = table.number();
        stack.id = id;
    } catch (const std::exception&) {
        return;
    }
}

std::size_t StackMemo::place_of(const Frame& innermost) noexcept {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2**64 divided by the golden ratio
    return ((innermost.address ^ (innermost.instruction << 1)) * golden) >> (64 - most_stacks_log2);
}

}  // namespace gpuviz::record
