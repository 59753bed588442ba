#include "record/stack_table.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace gpuviz::record {
namespace {

constexpr std::size_t first_slots = 1024;
constexpr std::size_t frames_per_stack = 32;

std::uint64_t next_number() noexcept {
    static std::atomic<std::uint64_t> numbers{0};
    return ++numbers;
}

// Combines both halves of the 128-bit product, so that every bit of each factor affects the result.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return std::uint64_t(product) ^ std::uint64_t(product >> 64);
}

// The products of the frames are independent of each other; both factors include the position in
// the stack. The constants are the fractional parts of the square roots of 2, 3 and 5, made odd.
std::uint64_t hash_of(std::span<const StackFrame> frames) noexcept {
    std::uint64_t hash = 0;
    std::uint64_t place = 0x6a09e667f3bcc909;
    for (const StackFrame& frame : frames) {
        hash += (frame.code + place) * (std::uint64_t(frame.instruction) ^ place);
        place += 0xbb67ae8584caa73b;
    }
    return fold(hash ^ frames.size(), 0x3c6ef372fe94f82b);
}

bool same(std::span<const StackFrame> left, std::span<const StackFrame> right) noexcept {
    static_assert(std::has_unique_object_representations_v<StackFrame>);
    return left.size() == right.size() &&
           std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

}  // namespace

StackTable::StackTable(std::size_t max_stacks)
    : number_(next_number()), max_stacks_(max_stacks), slots_(first_slots), ends_{0} {
    if (max_stacks == 0 || max_stacks > 1u << 28) {
        throw std::invalid_argument("max_stacks must be between 1 and 2**28, got " +
                                    std::to_string(max_stacks) + ".");
    }
}

StackTable::Interned StackTable::intern(std::span<const StackFrame> frames) noexcept {
    const std::lock_guard lock(mutex_);
    const Interned stack = add(frames, Forgotten::skip);
    const bool was_unowned =
        std::erase_if(unowned_, [&](const Unowned& each) { return each.id == stack.id; }) != 0;
    return {stack.id, stack.is_new || was_unowned};
}

StackTable::Interned StackTable::intern_unowned(std::span<const StackFrame> frames,
                                                const void* thread) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        // Also so that forget() needs no memory.
        unowned_.reserve(unowned_.size() + 1);
        forgotten_.reserve(forgotten_.size() + unowned_.size() + 1);
    } catch (const std::bad_alloc&) {
        ++dropped_;
        return {0, false};
    }
    const Interned stack = add(frames, Forgotten::find);
    if (stack.is_new) {
        unowned_.push_back({stack.id, thread});
    }
    return {stack.id, !is_owned(stack.id)};
}

std::vector<StackTable::Unowned> StackTable::unowned() const {
    const std::lock_guard lock(mutex_);
    return unowned_;
}

void StackTable::forget_inner(std::uint32_t id, std::size_t count) noexcept {
    const std::lock_guard lock(mutex_);
    forget(id, count);
    std::erase_if(unowned_, [&](const Unowned& each) { return each.id == id; });
}

std::size_t StackTable::settle() noexcept {
    const std::lock_guard lock(mutex_);
    for (const Unowned& each : unowned_) {
        forget(each.id, without_marks(frames_of(each.id)).size());
    }
    unowned_.clear();
    return ends_.size() - 1;
}

void StackTable::forget(std::uint32_t id, std::size_t count) noexcept {
    try {
        forgotten_.emplace(id, count);
    } catch (const std::bad_alloc&) {
        // Nobody may see the addresses.
        std::ranges::fill(std::span(frames_).subspan(ends_[id - 1], count), StackFrame{0, 0});
    }
}

StackTable::Interned StackTable::add(std::span<const StackFrame> frames,
                                     Forgotten forgotten) noexcept {
    if (frames.empty()) {
        return {0, false};
    }
    const std::uint64_t hash = hash_of(frames);
    std::size_t slot = slot_of(hash, frames, forgotten);
    if (slots_[slot].id != 0) {
        return {slots_[slot].id, false};
    }
    const std::size_t stacks = ends_.size() - 1;
    if (stacks == max_stacks_ || frames_.size() + frames.size() > max_stacks_ * frames_per_stack) {
        ++dropped_;
        return {0, false};
    }
    try {
        if (2 * (stacks + 1) > slots_.size()) {
            grow();
            slot = slot_of(hash, frames, forgotten);
        }
        ends_.push_back(frames_.size() + frames.size());
        frames_.insert(frames_.end(), frames.begin(), frames.end());
    } catch (const std::bad_alloc&) {
        ends_.resize(stacks + 1);
        ++dropped_;
        return {0, false};
    }
    slots_[slot] = {hash, std::uint32_t(stacks + 1)};
    return {std::uint32_t(stacks + 1), true};
}

std::uint32_t StackTable::find(std::span<const StackFrame> frames) noexcept {
    if (frames.empty()) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    const std::uint32_t id = slots_[slot_of(hash_of(frames), frames, Forgotten::skip)].id;
    return is_owned(id) ? id : 0;
}

bool StackTable::is_owned(std::uint32_t id) const noexcept {
    return std::ranges::none_of(unowned_, [&](const Unowned& each) { return each.id == id; });
}

std::vector<StackFrame> StackTable::frames(std::uint32_t id) const {
    const std::lock_guard lock(mutex_);
    const std::span<const StackFrame> all = frames_of(id);
    const auto cut = forgotten_.find(id);
    if (cut == forgotten_.end()) {
        return {all.begin(), all.end()};
    }
    std::vector<StackFrame> found{{0, std::int64_t(cut->second)}};
    std::ranges::copy(all.subspan(cut->second), std::back_inserter(found));
    return found;
}

std::size_t StackTable::size() const noexcept {
    const std::lock_guard lock(mutex_);
    return ends_.size() - 1;
}

std::uint64_t StackTable::dropped() const noexcept {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

std::size_t StackTable::bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return slots_.capacity() * sizeof(Slot) + ends_.capacity() * sizeof(std::uint64_t) +
           frames_.capacity() * sizeof(StackFrame);
}

std::span<const StackFrame> StackTable::frames_of(std::uint32_t id) const noexcept {
    return std::span(frames_).subspan(ends_[id - 1], ends_[id] - ends_[id - 1]);
}

// The slot of the stack, or the free slot for it.
std::size_t StackTable::slot_of(std::uint64_t hash, std::span<const StackFrame> frames,
                                Forgotten forgotten) const noexcept {
    const auto is_it = [&](const Slot& slot) {
        return slot.hash == hash && same(frames_of(slot.id), frames) &&
               (forgotten == Forgotten::find || !forgotten_.contains(slot.id));
    };
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash & mask;
    while (slots_[slot].id != 0 && !is_it(slots_[slot])) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

void StackTable::grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    const std::size_t mask = larger.size() - 1;
    for (const Slot& old : slots_) {
        if (old.id != 0) {
            std::size_t slot = old.hash & mask;
            while (larger[slot].id != 0) {
                slot = (slot + 1) & mask;
            }
            larger[slot] = old;
        }
    }
    slots_ = std::move(larger);
}

}  // namespace gpuviz::record
