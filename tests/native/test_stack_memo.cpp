// A fake interpreter that calls, returns and proceeds at random: a remembered stack is the one that
// reading all frames finds.
#include <cstddef>
#include <deque>
#include <random>
#include <vector>

#include "check.hpp"
#include "record/stack_memo.hpp"

namespace {

using gpuviz::record::FrameLayout;
using gpuviz::record::StackFrame;
using gpuviz::record::StackMemo;
using gpuviz::record::StackTable;

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
constexpr std::uint8_t kThread = 0, kGenerator = 1, kInterpreter = 3;
constexpr FrameLayout kLayout{0, std::nullopt, 8, 0, 16, 24, offsetof(Code, instructions), 0};

class Interpreter {
  public:
    explicit Interpreter(std::size_t codes) : codes_(codes, Code{2, {}}), frames_(512) {}

    void call(std::size_t code, int unit, std::uint8_t owner = kThread) {
        Frame& frame = frames_[depth_++];
        frame.previous = current_;
        frame.owner = owner;
        frame.code = reinterpret_cast<std::uint64_t>(&codes_[code]);
        current_ = &frame;
        proceed(unit);
    }
    void proceed(int unit) {
        current_->instruction = reinterpret_cast<std::uint64_t>(
            &reinterpret_cast<const Code*>(current_->code)->instructions[unit]);
    }
    void give_back() {
        current_ = current_->previous;
        --depth_;
    }
    [[nodiscard]] std::size_t depth() const { return depth_; }
    [[nodiscard]] const void* thread() const { return &current_; }

  private:
    std::deque<Code> codes_;
    std::vector<Frame> frames_;
    std::size_t depth_ = 0;
    Frame* current_ = nullptr;
};

std::vector<StackFrame> read(const Interpreter& interpreter, std::size_t most) {
    std::vector<StackFrame> frames(most);
    frames.resize(gpuviz::record::read_frames(kLayout, interpreter.thread(), frames));
    return frames;
}

void a_remembered_stack_is_the_current_one() {
    std::mt19937_64 random(1234);
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    for (const std::size_t most : {std::size_t{3}, std::size_t{64}}) {
        Interpreter interpreter(5);  // the last code is the interpreter's
        StackTable table(1 << 16);
        StackTable other(1 << 16);
        StackMemo memo;
        int found = 0;
        for (int step = 0; step < 200'000; ++step) {
            const bool calls = interpreter.depth() < 2 + below(6);
            if (calls && below(3) != 0) {
                const std::uint8_t owner = below(8) == 0   ? kInterpreter
                                           : below(8) == 0 ? kGenerator
                                                           : kThread;
                const std::size_t code = owner == kInterpreter ? 4 : below(4);
                interpreter.call(code, int(below(4)), owner);
            } else if (interpreter.depth() > 1 && below(2) == 0) {
                interpreter.give_back();
            } else if (interpreter.depth() != 0) {
                interpreter.proceed(int(below(4)));
            }
            const std::vector<StackFrame> frames = read(interpreter, most);
            StackTable& used = below(4) == 0 ? other : table;
            const std::uint32_t id = used.intern(frames).id;
            if (const std::uint32_t known = memo.find(kLayout, interpreter.thread(), used)) {
                CHECK_EQUAL(known, id);
                ++found;
            } else if (id != 0) {
                memo.remember(kLayout, interpreter.thread(), used, id, frames.size());
            }
        }
        CHECK_EQUAL(found > 10'000, true);
    }
}

void a_loop_finds_its_stacks_again() {
    Interpreter interpreter(1);
    StackTable table(16);
    StackMemo memo;
    for (int depth = 0; depth < 30; ++depth) {
        interpreter.call(0, 3);
    }
    for (int round = 0; round < 3; ++round) {
        for (const int unit : {2, 5}) {
            interpreter.proceed(unit);
            const std::uint32_t id = table.intern(read(interpreter, 64)).id;
            const std::uint32_t expected = round == 0 ? 0 : id;
            CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), expected);
            memo.remember(kLayout, interpreter.thread(), table, id, 30);
        }
    }
}

void a_function_that_several_lines_call_has_all_their_stacks() {
    Interpreter interpreter(1);
    StackTable table(16);
    StackMemo memo;
    interpreter.call(0, 3);
    for (int round = 0; round < 3; ++round) {
        for (const int line : {2, 3, 4, 5}) {
            interpreter.proceed(line);
            for (int depth = 0; depth < 10; ++depth) {
                interpreter.call(0, 3);
            }
            const std::uint32_t id = table.intern(read(interpreter, 64)).id;
            const std::uint32_t expected = round == 0 ? 0 : id;
            CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), expected);
            memo.remember(kLayout, interpreter.thread(), table, id, 11);
            CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), id);
            while (interpreter.depth() > 1) {
                interpreter.give_back();
            }
        }
    }
}

void a_stack_that_was_cut_or_has_not_started_is_not_remembered() {
    Interpreter interpreter(1);
    StackTable table(16);
    StackMemo memo;
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 0u);
    interpreter.call(0, 3);
    interpreter.call(0, 3);
    memo.remember(kLayout, interpreter.thread(), table, 1, 1);
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 0u);
    memo.remember(kLayout, interpreter.thread(), table, 1, 2);
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 1u);
    interpreter.call(0, 1);
    memo.remember(kLayout, interpreter.thread(), table, 1, 3);
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 0u);
    while (interpreter.depth() <= StackMemo::most_frames) {
        interpreter.call(0, 3);
    }
    memo.remember(kLayout, interpreter.thread(), table, 1, interpreter.depth());
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 0u);
    interpreter.give_back();
    memo.remember(kLayout, interpreter.thread(), table, 1, interpreter.depth());
    CHECK_EQUAL(memo.find(kLayout, interpreter.thread(), table), 1u);
}

}  // namespace

int main() {
    a_remembered_stack_is_the_current_one();
    a_loop_finds_its_stacks_again();
    a_function_that_several_lines_call_has_all_their_stacks();
    a_stack_that_was_cut_or_has_not_started_is_not_remembered();
}
