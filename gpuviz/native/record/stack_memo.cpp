#include "record/stack_memo.hpp"

#include <array>
#include <bit>
#include <exception>

namespace gpuviz::record {

std::uint32_t StackMemo::find(const FrameLayout& layout, const void* thread_state,
                              const StackTable& table) noexcept {
    std::uint64_t address = innermost_frame(layout, thread_state);
    if (address == 0 || stacks_.empty()) {
        return 0;
    }
    const Frame innermost{address, instruction_of(layout, address)};
    const auto has_frames = [&](const Stack& stack) {
        return stack.table == table.number() && stack.code == table.modules().code() &&
               stack.frames.front().address == innermost.address && is_current(layout, stack);
    };
    std::uint64_t hash = hash_of(0, innermost);
    std::uint16_t& latest = latest_[place_of(hash)];
    if (has_frames(stacks_[latest])) {
        return find_with_modules(layout, table, stacks_[latest], latest);
    }
    for (std::size_t depth = 1; depth < most_hashed; ++depth) {
        address = previous_of(layout, address);
        if (address == 0) {
            break;
        }
        hash = hash_of(hash, {address, instruction_of(layout, address)});
    }
    Stack& stack = stacks_[place_of(hash)];
    return has_frames(stack) ? find_with_modules(layout, table, stack, latest) : 0;
}

// The id of a stack that has the frames of a current one, and the modules that those call.
std::uint32_t StackMemo::find_with_modules(const FrameLayout& layout, const StackTable& table,
                                           Stack& stack, std::uint16_t& latest) noexcept {
    if (has_modules(layout, stack, table.modules())) {
        latest = std::uint16_t(&stack - stacks_.data());
        return stack.id;
    }
    Stack& other = stacks_[place_of(hash_with_modules(layout, stack))];
    if (other.table != stack.table || other.code != stack.code || other.frames != stack.frames ||
        !has_modules(layout, other, table.modules())) {
        return 0;
    }
    latest = std::uint16_t(&other - stacks_.data());
    return other.id;
}

// An address is read only after the frame below it has confirmed it. The processor predicts that it
// will, so unlike a walk along the chain, the reads do not wait for each other.
bool StackMemo::is_current(const FrameLayout& layout, const Stack& stack) noexcept {
    for (const Frame* frame = stack.frames.data(); frame->address != 0; ++frame) {
        const std::uint64_t difference =
            (instruction_of(layout, frame->address) ^ frame->instruction) |
            (previous_of(layout, frame->address) ^ frame[1].address);
        if (difference != 0) {
            return false;
        }
    }
    return true;
}

bool StackMemo::has_modules(const FrameLayout& layout, Stack& stack,
                            const Modules& modules) noexcept {
    for (const Call& call : stack.calls) {
        if (first_local_of(layout, call.frame) != call.module) {
            return false;
        }
    }
    const std::uint32_t generation = modules.generation();
    if (stack.generation != generation) {
        for (const Call& call : stack.calls) {
            if (modules.find(call.module) != call.number) {
                return false;
            }
        }
        stack.generation = generation;
    }
    return true;
}

std::uint64_t StackMemo::hash_with_modules(const FrameLayout& layout, const Stack& stack) noexcept {
    std::uint64_t hash = stack.hash;
    for (const Call& call : stack.calls) {
        hash = hash_of(hash, {call.frame, first_local_of(layout, call.frame)});
    }
    return hash;
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
            latest_.resize(most_stacks);
            stacks_.resize(most_stacks);
        }
        std::array<Frame, most_frames + 1> frames;
        std::size_t count = 0;
        std::size_t seen = 0;
        std::uint64_t hash = 0;
        std::size_t innermost = 0;
        const Modules& modules = table.modules();
        const std::uint64_t code = modules.code();
        const std::uint32_t generation = modules.generation();
        std::vector<Call> calls;
        for (; address != 0; address = previous_of(layout, address)) {
            if (count == most_frames) {
                return;
            }
            const Frame& frame = frames[count++] = {address, instruction_of(layout, address)};
            if (count <= most_hashed) {
                hash = hash_of(hash, frame);
            }
            if (count == 1) {
                innermost = place_of(hash);
            }
            if (!is_interpreters(layout, address)) {
                ++seen;
                if (code_of(layout, address) == code && code != 0) {
                    const std::uint64_t module = first_local_of(layout, address);
                    calls.push_back({address, module, modules.find(module)});
                }
            }
        }
        if (seen != depth) {
            return;
        }
        frames[count++] = {0, 0};
        const auto keep = [&](std::size_t place) {
            Stack& stack = stacks_[place];
            stack.table = 0;
            stack.frames.assign(frames.begin(), frames.begin() + count);
            stack.hash = hash;
            stack.calls = calls;
            stack.table = table.number();
            stack.code = code;
            stack.generation = generation;
            stack.id = id;
            latest_[innermost] = std::uint16_t(place);
        };
        const std::size_t place = place_of(hash);
        keep(place);
        if (!calls.empty()) {
            keep(place_of(hash_with_modules(layout, stacks_[place])));
        }
    } catch (const std::exception&) {
        return;
    }
}

std::uint64_t StackMemo::hash_of(std::uint64_t hash, const Frame& frame) noexcept {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2**64 divided by the golden ratio
    return (std::rotl(hash, 29) ^ frame.address ^ (frame.instruction << 1)) * golden;
}

std::size_t StackMemo::place_of(std::uint64_t hash) noexcept {
    return hash >> (64 - most_stacks_log2);
}

}  // namespace gpuviz::record
