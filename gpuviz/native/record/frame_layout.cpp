#include "record/frame_layout.hpp"

#include <cstring>

#include "record/outer_frames.hpp"

namespace gpuviz::record {
namespace {

static_assert(sizeof(void*) == 8, "The layouts below are those of 64-bit builds.");

// Compiled from the internal headers of 3.11.7 and 3.12.1.
constexpr FrameLayout layout_3_11{56, 8, 48, 32, 56, 69, 184, 168, 72};
constexpr FrameLayout layout_3_12{56, 0, 8, 0, 56, 70, 192, 176, 72};

// Positions in _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h), in words.
struct DebugOffsetWords {
    std::size_t thread_state;       // size, prev, next, interp, current_frame, ...
    std::size_t interpreter_frame;  // size, previous, executable, instr_ptr, localsplus, owner, ...
    std::size_t code_object;        // size and eight members before co_code_adaptive
};
constexpr DebugOffsetWords words_3_13{19, 28, 34};
constexpr DebugOffsetWords words_3_14{22, 31, 39};

// enum _frameowner: a thread's frame is 0, a generator's 1; from 3 on they belong to the
// interpreter and run no Python code.
constexpr std::uint8_t owned_by_generator = 1;
constexpr std::uint8_t owned_by_interpreter = 3;

// Frames of a thread that runs meanwhile may seem to form a circle.
constexpr std::size_t most_steps = OuterFrames::most_frames;

std::optional<FrameLayout> layout_from(const DebugOffsetWords& words, std::uint64_t version,
                                       const std::uint64_t* table) noexcept {
    const bool free_threaded = table[2] != 0;
    if (std::memcmp(table, "xdebugpy", 8) != 0 || table[1] != version || free_threaded) {
        return std::nullopt;
    }
    const std::uint64_t* thread = table + words.thread_state;
    const std::uint64_t* frame = table + words.interpreter_frame;
    const std::uint64_t* code = table + words.code_object;
    const FrameLayout layout{
        .thread_frame = thread[4],
        .cframe_frame = std::nullopt,
        .previous = frame[1],
        .code = frame[2],
        .instruction = frame[3],
        .owner = frame[5],
        .code_start = code[9],
        // _co_firsttraceable is not in the table; in 3.11 to 3.14 it is two pointers before the
        // instructions.
        .first_traceable = code[9] - 16,
        .locals = frame[4],
    };
    const bool plausible = layout.thread_frame < thread[0] && layout.previous < frame[0] &&
                           layout.code < frame[0] && layout.instruction < frame[0] &&
                           layout.owner < frame[0] && layout.locals <= frame[0] && frame[0] < 256 &&
                           thread[0] < 65536 && layout.code_start >= 16 &&
                           layout.code_start < code[0];
    return plausible ? std::optional(layout) : std::nullopt;
}

template <typename Memory>
std::uint8_t owner_of(const FrameLayout& layout, std::uint64_t frame, Memory& memory) noexcept {
    return memory.template load<std::uint8_t>(frame, layout.owner);
}

// The byte offset of the current instruction in its code.
template <typename Memory>
std::int64_t offset_of(const FrameLayout& layout, std::uint64_t frame, Memory& memory) noexcept {
    return std::int64_t(instruction_of(layout, frame, memory) - code_of(layout, frame, memory) -
                        layout.code_start);
}

template <typename Memory>
bool is_interpreters(const FrameLayout& layout, std::uint64_t frame, Memory& memory) noexcept {
    return owner_of(layout, frame, memory) >= owned_by_interpreter;
}

template <typename Memory>
bool has_reached_a_line(const FrameLayout& layout, std::uint64_t frame, Memory& memory) noexcept {
    const auto units =
        memory.template load<std::int32_t>(code_of(layout, frame, memory), layout.first_traceable);
    return offset_of(layout, frame, memory) >= 2 * std::int64_t{units};
}

// Continues a walk whose buffer is full, from a frame that is not in it.
template <typename Memory>
[[gnu::noinline]] void read_outer_frames(const FrameLayout& layout, std::uint64_t frame,
                                         Memory& memory, std::span<StackFrame> frames) noexcept {
    OuterFrames outer(frames);
    for (std::size_t steps = 0; frame != 0 && outer.wants_more() && steps < most_steps; ++steps) {
        if (!is_interpreters(layout, frame, memory)) {
            outer.push({code_of(layout, frame, memory), offset_of(layout, frame, memory)});
        }
        frame = previous_of(layout, frame, memory);
    }
    outer.finish();
}

template <typename Memory>
std::size_t read_all_frames(const FrameLayout& layout, const void* thread_state, Memory& memory,
                            std::span<StackFrame> frames) noexcept {
    std::size_t count = 0;
    std::size_t steps = 0;
    std::uint64_t frame = innermost_frame(layout, thread_state, memory);
    for (; frame != 0 && count < frames.size(); frame = previous_of(layout, frame, memory)) {
        if (++steps > most_steps) {
            return 0;
        }
        if (is_interpreters(layout, frame, memory)) {
            continue;
        }
        // Only the innermost frame can be one that has not started, except during a garbage
        // collection in its first instructions; then it appears at its first line.
        const bool has_started = count != 0 ||
                                 owner_of(layout, frame, memory) == owned_by_generator ||
                                 has_reached_a_line(layout, frame, memory);
        if (has_started) {
            frames[count++] = {code_of(layout, frame, memory), offset_of(layout, frame, memory)};
        }
    }
    if (frame != 0) {
        read_outer_frames(layout, frame, memory, frames);
    }
    return count;
}

}  // namespace

std::optional<FrameLayout> known_layout(std::uint64_t version,
                                        const std::uint64_t* debug_offsets) noexcept {
    switch (version >> 16) {
        case 0x030b:
            return layout_3_11;
        case 0x030c:
            return layout_3_12;
        case 0x030d:
            return debug_offsets ? layout_from(words_3_13, version, debug_offsets) : std::nullopt;
        case 0x030e:
            return debug_offsets ? layout_from(words_3_14, version, debug_offsets) : std::nullopt;
        default:
            return std::nullopt;
    }
}

bool is_interpreters(const FrameLayout& layout, std::uint64_t frame) noexcept {
    StableMemory memory;
    return is_interpreters(layout, frame, memory);
}

bool has_reached_a_line(const FrameLayout& layout, std::uint64_t frame) noexcept {
    StableMemory memory;
    return has_reached_a_line(layout, frame, memory);
}

std::size_t read_frames(const FrameLayout& layout, const void* thread_state,
                        std::span<StackFrame> frames) noexcept {
    StableMemory memory;
    return read_all_frames(layout, thread_state, memory, frames);
}

std::size_t read_frames(const FrameLayout& layout, const void* thread_state, MemoryReader& memory,
                        std::span<StackFrame> frames) noexcept {
    return read_all_frames(layout, thread_state, memory, frames);
}

}  // namespace gpuviz::record
