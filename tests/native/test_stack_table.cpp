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
    const int thread = 0;
    const std::uint32_t first = table.intern_unowned(one, &thread);
    const std::uint32_t second = table.intern_unowned(two, &thread);
    CHECK_EQUAL(table.intern_unowned(one, &thread), first);
    CHECK_EQUAL(table.find(one), 0u);
    CHECK_EQUAL(table.unowned().size(), 2u);
    CHECK_EQUAL(table.unowned()[1].thread == &thread, true);

    const StackTable::Interned owned = table.intern(one);
    CHECK_EQUAL(owned.id, first);
    CHECK_EQUAL(owned.is_new, true);
    CHECK_EQUAL(table.intern(one).is_new, false);
    CHECK_EQUAL(table.find(one), first);

    CHECK_EQUAL(table.settle(), 2u);
    CHECK_EQUAL(table.frames(first) == one, true);
    CHECK_EQUAL(table.frames(second) == (std::vector<StackFrame>{{0, 2}}), true);
    CHECK_EQUAL(table.find(two), 0u);
    const std::vector<StackFrame> deep{{16, 8}, {48, 2}, {32, 4}};
    const std::uint32_t third = table.intern_unowned(deep, &thread);
    table.forget_inner(third, 2);
    CHECK_EQUAL(table.unowned().size(), 0u);
    CHECK_EQUAL(table.frames(third) == (std::vector<StackFrame>{{0, 2}, {32, 4}}), true);
    CHECK_EQUAL(table.find(deep), 0u);
    CHECK_EQUAL(table.intern(two).id, 4u);
    CHECK_EQUAL(table.frames(4) == two, true);
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
