#include "record/lent_stack.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <span>
#include <vector>

namespace gpuviz::record {
namespace {

// 0 if the code of one may vanish.
std::uint32_t join(std::uint32_t own, std::uint32_t lent, StackTable& table) {
    if (table.is_unowned(own) || table.is_unowned(lent)) {
        return 0;
    }
    const std::vector<StackFrame> stacks[]{table.frames(own), table.frames(lent)};
    std::vector<StackFrame> found;
    for (const std::vector<StackFrame>& stack : stacks) {
        const std::span<const StackFrame> frames = without_marks(stack);
        found.insert(found.end(), frames.begin(), frames.end());
    }
    for (const std::vector<StackFrame>& stack : stacks) {
        std::ranges::copy_if(stack, std::back_inserter(found), [](const StackFrame& frame) {
            return is_mark(frame, StackMark::module);
        });
    }
    return table.intern(found).id;
}

}  // namespace

std::uint32_t LentStack::joined(std::uint32_t own, std::uint32_t lent, StackTable& table) noexcept {
    struct Joined {
        std::uint64_t table;
        std::uint32_t own, lent, id;
    };
    thread_local std::array<Joined, 256> known{};
    Joined& place = known[(own * 31 + lent) % known.size()];
    if (place.table == table.number() && place.own == own && place.lent == lent) {
        return place.id;
    }
    try {
        const std::uint32_t id = join(own, lent, table);
        if (id == 0) {
            return own;
        }
        place = {table.number(), own, lent, id};
        return id;
    } catch (const std::bad_alloc&) {
        return own;
    }
}

void LentStack::begin(std::uint32_t stack, Work work) noexcept {
    const std::lock_guard lock(mutex_);
    ++lenders_;
    lender_.store(current_thread_id(), std::memory_order_relaxed);
    work_.store(work, std::memory_order_release);
    stack_.store(lenders_ == 1 ? stack : 0, std::memory_order_relaxed);
}

void LentStack::end() noexcept {
    const std::lock_guard lock(mutex_);
    --lenders_;
    stack_.store(0, std::memory_order_relaxed);
}

}  // namespace gpuviz::record
