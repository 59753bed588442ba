// A fake interpreter: layouts are found, rejected, and used to read frames.
#include <cstddef>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "record/frame_layout.hpp"

namespace {

using gpuviz::record::FrameLayout;
using gpuviz::record::known_layout;

// The words of _Py_DebugOffsets that known_layout reads, in the layout of 3.13 and 3.14.
std::vector<std::uint64_t> debug_offsets(std::uint64_t version) {
    const bool is_3_14 = version >> 16 == 0x030e;
    const std::size_t thread = is_3_14 ? 22 : 19;
    const std::size_t frame = is_3_14 ? 31 : 28;
    const std::size_t code = is_3_14 ? 39 : 34;
    std::vector<std::uint64_t> words(64, 0);
    std::memcpy(words.data(), "xdebugpy", 8);
    words[1] = version;
    words[thread] = 300;
    words[thread + 4] = 72;
    words[frame] = 88;
    words[frame + 1] = 8;
    words[frame + 2] = 0;
    words[frame + 3] = 56;
    words[frame + 4] = 80;
    words[frame + 5] = 74;
    words[code] = 216;
    words[code + 9] = 200;
    return words;
}

void layouts_from_3_13_on_stand_in_the_interpreter() {
    for (const std::uint64_t version : {0x030d00f0u, 0x030d0cf0u, 0x030e00f0u, 0x030e05f0u}) {
        const auto words = debug_offsets(version);
        const FrameLayout expected{72, std::nullopt, 8, 0, 56, 74, 200, 184, 80};
        CHECK_EQUAL(known_layout(version, words.data()) == expected, true);
        CHECK_EQUAL(known_layout(version, nullptr).has_value(), false);
        CHECK_EQUAL(known_layout(version + 0x100, words.data()).has_value(), false);
        for (const std::size_t damaged : {0, 1, 2}) {
            auto other = words;
            other[damaged] ^= 1;
            CHECK_EQUAL(known_layout(version, other.data()).has_value(), false);
        }
    }
}

void versions_not_known_have_no_layout() {
    const auto words = debug_offsets(0x030f00f0);
    CHECK_EQUAL(known_layout(0x030a00f0, nullptr).has_value(), false);
    CHECK_EQUAL(known_layout(0x030b00f0, nullptr).has_value(), true);
    CHECK_EQUAL(known_layout(0x030c00f0, nullptr).has_value(), true);
    CHECK_EQUAL(known_layout(0x030f00f0, words.data()).has_value(), false);
}

struct Frame {
    std::uint64_t code;
    Frame* previous;
    std::uint64_t instruction;
    std::uint8_t owner;
};
struct Code {
    std::int32_t first_traceable;
    std::uint16_t instructions[8];
};

void frames_of_the_interpreter_and_one_not_begun_are_left_out() {
    Code code{2, {}};
    const auto address = reinterpret_cast<std::uint64_t>(&code);
    const auto instruction = [&](int unit) {
        return reinterpret_cast<std::uint64_t>(&code.instructions[unit]);
    };
    Frame outermost{address | 1, nullptr, instruction(5), 0};
    Frame entry{0, &outermost, 0, 3};
    Frame generator{address, &entry, instruction(0), 1};
    Frame caller{address, &generator, instruction(2), 0};
    Frame not_begun{address, &caller, instruction(1), 0};
    Frame* thread = &not_begun;
    const FrameLayout layout{0, std::nullopt, 8, 0, 16, 24, offsetof(Code, instructions), 0};

    std::vector<gpuviz::record::StackFrame> found(8);
    found.resize(gpuviz::record::read_frames(layout, &thread, found));

    const std::vector<gpuviz::record::StackFrame> expected{
        {address, 4}, {address, 0}, {address, 10}};
    CHECK_EQUAL(found == expected, true);
    CHECK_EQUAL(gpuviz::record::read_frames(layout, &thread, std::span(found).first(2)), 2u);
    gpuviz::record::MemoryReader memory;
    CHECK_EQUAL(memory.is_usable(), true);
    std::vector<gpuviz::record::StackFrame> again(8);
    again.resize(gpuviz::record::read_frames(layout, &thread, memory, again));
    CHECK_EQUAL(again == expected, true);
    CHECK_EQUAL(memory.has_failed(), false);
    thread = nullptr;
    CHECK_EQUAL(gpuviz::record::read_frames(layout, &thread, found), 0u);
}

void a_circle_of_frames_comes_to_an_end() {
    Frame first{0, nullptr, 0, 3};
    Frame second{0, &first, 0, 3};
    first.previous = &second;
    Frame full{8, &first, 8, 1};
    const FrameLayout layout{0, std::nullopt, 8, 0, 16, 24, offsetof(Code, instructions), 0};
    std::vector<gpuviz::record::StackFrame> found(1);

    Frame* thread = &first;
    CHECK_EQUAL(gpuviz::record::read_frames(layout, &thread, found), 0u);
    thread = &full;
    CHECK_EQUAL(gpuviz::record::read_frames(layout, &thread, found), 1u);
}

void memory_that_is_not_there_reads_as_nothing() {
    gpuviz::record::MemoryReader memory;
    const std::uint64_t value = 7;
    const auto address = reinterpret_cast<std::uint64_t>(&value);
    CHECK_EQUAL(memory.load<std::uint64_t>(address, 0), 7u);
    CHECK_EQUAL(memory.load<std::uint64_t>(8, 0), 0u);
    CHECK_EQUAL(memory.has_failed(), true);
    CHECK_EQUAL(memory.load<std::uint64_t>(address, 0), 0u);
    memory.restart();
    CHECK_EQUAL(memory.load<std::uint64_t>(address, 0), 7u);
    CHECK_EQUAL(memory.load<std::uint64_t>(address - address % 4096 + 4092, 0), 0u);
    CHECK_EQUAL(memory.has_failed(), true);
    memory.restart();
    for (std::uint64_t page = 0; page < 200; ++page) {  // a chain without an end
        static_cast<void>(memory.load<std::uint64_t>(page * 4096, 0));
    }
    CHECK_EQUAL(memory.has_failed(), true);
}

}  // namespace

int main() {
    layouts_from_3_13_on_stand_in_the_interpreter();
    versions_not_known_have_no_layout();
    frames_of_the_interpreter_and_one_not_begun_are_left_out();
    a_circle_of_frames_comes_to_an_end();
    memory_that_is_not_there_reads_as_nothing();
}
