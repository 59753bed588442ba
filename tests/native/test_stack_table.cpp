// Against std::map: equal stacks have the same id, different stacks have different ids.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "check.hpp"
#include "record/stack_table.hpp"

namespace {

using gpuviz::record::StackFrame;
using gpuviz::record::StackTable;

struct Less {
    bool operator()(const std::vector<StackFrame>& a, const std::vector<StackFrame>& b) const {
        return std::lexicographical_compare(
            a.begin(), a.end(), b.begin(), b.end(), [](const StackFrame& x, const StackFrame& y) {
                return std::pair(x.code, x.instruction) < std::pair(y.code, y.instruction);
            });
    }
};

void random_stacks_get_the_ids_of_a_map() {
    std::mt19937_64 random(1234);
    StackTable table(100'000);
    std::map<std::vector<StackFrame>, std::uint32_t, Less> ids;
    for (int repeat = 0; repeat < 50'000; ++repeat) {
        std::vector<StackFrame> stack(1 + random() % 12);
        for (StackFrame& frame : stack) {
            frame = {0x7f0000001000 + 16 * (random() % 3), std::int64_t(2 * (random() % 2))};
        }
        const auto expected = std::uint32_t(ids.size() + 1);
        const auto [place, is_new] = ids.emplace(stack, expected);
        const StackTable::Interned found = table.intern(stack);
        CHECK_EQUAL(found.id, place->second);
        CHECK_EQUAL(found.is_new, is_new);
    }
    CHECK_EQUAL(table.size(), ids.size());
    for (const auto& [stack, id] : ids) {
        const auto frames = table.frames(id);
        CHECK_EQUAL(std::vector(frames.begin(), frames.end()) == stack, true);
    }
}

void an_unowned_stack_is_known_once_it_is_owned_or_loses_its_frames() {
    StackTable table(100);
    const std::vector<StackFrame> one{{16, 2}, {32, 4}};
    const std::vector<StackFrame> two{{48, 2}, {32, 4}};
    const std::vector<StackFrame> three{{16, 8}, {48, 2}, {32, 4}};
    const int thread = 0;
    const auto unowned = [&](const std::vector<StackFrame>& stack, std::uint32_t id, bool is_new) {
        const StackTable::Interned found = table.intern_unowned(stack, &thread);
        CHECK_EQUAL(found.id, id);
        CHECK_EQUAL(found.is_new, is_new);
    };
    const auto is = [&](std::uint32_t id, const std::vector<StackFrame>& frames) {
        CHECK_EQUAL(table.frames(id) == frames, true);
    };
    unowned(one, 1, true);
    unowned(two, 2, true);
    unowned(three, 3, true);
    unowned(one, 1, true);
    CHECK_EQUAL(table.find(one), 0u);
    CHECK_EQUAL(table.unowned().size(), 3u);
    CHECK_EQUAL(table.unowned()[1].thread == &thread, true);

    const StackTable::Interned owned = table.intern(one);
    CHECK_EQUAL(owned.id, 1u);
    CHECK_EQUAL(owned.is_new, true);
    CHECK_EQUAL(table.intern(one).is_new, false);
    CHECK_EQUAL(table.find(one), 1u);
    unowned(one, 1, false);

    table.forget_inner(3, 2);
    CHECK_EQUAL(table.settle(), 3u);
    CHECK_EQUAL(table.unowned().size(), 0u);
    is(1, one);
    is(2, {{0, 2}});
    is(3, {{0, 2}, {32, 4}});
    unowned(two, 2, false);
    unowned(three, 3, false);
    CHECK_EQUAL(table.find(two), 0u);

    const StackTable::Interned again = table.intern(two);
    CHECK_EQUAL(again.id, 4u);
    CHECK_EQUAL(again.is_new, true);
    CHECK_EQUAL(table.find(two), 4u);
    is(4, two);
    CHECK_EQUAL(table.size(), 4u);
}

void a_full_table_still_finds_what_it_has() {
    StackTable table(2);
    const auto intern = [&](std::uint64_t code) {
        const StackFrame frame{code, 0};
        return table.intern({&frame, 1}).id;
    };
    CHECK_EQUAL(intern(10), 1u);
    CHECK_EQUAL(intern(20), 2u);
    CHECK_EQUAL(intern(30), 0u);
    CHECK_EQUAL(intern(20), 2u);
    CHECK_EQUAL(table.dropped(), 1u);
    CHECK_EQUAL(table.intern({}).id, 0u);
}

void long_stacks_fill_the_table_before_its_number_of_stacks() {
    StackTable table(4);
    std::vector<StackFrame> stack(60);
    std::uint32_t last = 0;
    for (std::uint64_t number = 1; number <= 4; ++number) {
        stack[0].code = number;
        last = table.intern(stack).id;
    }
    CHECK_EQUAL(table.size(), 2u);
    CHECK_EQUAL(last, 0u);
    CHECK_EQUAL(table.dropped(), 2u);
}

}  // namespace

int main() {
    random_stacks_get_the_ids_of_a_map();
    an_unowned_stack_is_known_once_it_is_owned_or_loses_its_frames();
    a_full_table_still_finds_what_it_has();
    long_stacks_fill_the_table_before_its_number_of_stacks();
}
