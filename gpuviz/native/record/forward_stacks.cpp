#include "record/forward_stacks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace gpuviz::record {

CurrentNode::~CurrentNode() {
    if (words_[0] == 0) {
        return;
    }
    if (words_[1] == untouched) {
        // The count is behind the pointer of the virtual functions. It does not become 0: the
        // engine has a reference while the node runs.
        const std::atomic_ref<std::uint64_t> count(
            *reinterpret_cast<std::uint64_t*>(words_[0] + sizeof(void*)));
        count.fetch_sub(1, std::memory_order_acq_rel);
        return;
    }
    static_assert(sizeof(std::shared_ptr<void>) == sizeof(words_));
    std::shared_ptr<void> reference;
    std::memcpy(static_cast<void*>(&reference), words_, sizeof(words_));
}

struct ForwardStacks::Thread {
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    std::uint64_t table = 0;  // StackTable::number()
    std::uint64_t next_node = unknown;
    std::uint32_t last_forward = 0;  // of the node that this thread ran last
    std::int32_t graph = -1;         // that it belonged to
    std::uint64_t node_number = 0;   // of the node asked for last, and its thread and stack
    std::uint64_t node_thread = 0;
    std::uint32_t node_stack = 0;

    // Marked stacks by the stack and the forward one.
    struct Marked {
        std::uint32_t stack = 0;
        std::uint32_t forward = 0;
        std::uint32_t id = 0;
    };
    std::array<Marked, 1024> marked{};
};

std::uint32_t ForwardStacks::find(const Autograd& autograd, StackTable& table,
                                  std::uint32_t stack) noexcept {
    thread_local std::unique_ptr<Thread> own;
    try {
        if (!own) {
            own = std::make_unique<Thread>();
        }
        Thread& thread = *own;
        if (thread.table != table.number()) {
            thread = Thread{};
            thread.table = table.number();
        }
        std::uint32_t found = stack;
        const std::int32_t graph = autograd.graph();
        if (graph >= 0) {
            if (thread.graph != graph) {
                thread.graph = graph;
                thread.last_forward = 0;
            }
            const std::uint32_t forward = forward_of(autograd, table, thread);
            Thread::Marked& marked = thread.marked[(stack * 31 + forward) % thread.marked.size()];
            if (marked.id == 0 || marked.stack != stack || marked.forward != forward) {
                marked = {stack, forward, with_mark(table, stack, forward)};
            }
            found = marked.id != 0 ? marked.id : stack;
        }
        note(autograd, thread, found);
        return found;
    } catch (const std::bad_alloc&) {
        return stack;
    }
}

void ForwardStacks::note(const Autograd& autograd, Thread& thread, std::uint32_t stack) {
    const std::uint64_t next_node = autograd.next_node();
    if (next_node == thread.next_node) {
        return;
    }
    // What a thread does first may follow nodes of before the recording.
    const bool is_first = std::exchange(thread.next_node, next_node) == Thread::unknown;
    const std::lock_guard lock(mutex_);
    Log& log = logs_[autograd.thread()];
    if (!log.empty() && log.back().next_node > next_node) {
        log.clear();  // it is of a thread that has ended
    }
    if (!log.empty() && log.back().next_node == next_node) {
        return;
    }
    if (log.size() == 2 * most_entries) {
        log.erase(log.begin(), log.begin() + most_entries);
    }
    log.push_back({next_node, stack});
    if (!is_first) {
        with_nodes_.insert(stack);
    }
}

bool ForwardStacks::has_node(std::uint32_t stack) const {
    const std::lock_guard lock(mutex_);
    return with_nodes_.contains(stack);
}

std::uint32_t ForwardStacks::forward_of(const Autograd& autograd, StackTable& table,
                                        Thread& thread) {
    const CurrentNode node(autograd);
    if (node.address() == 0) {
        return 0;
    }
    const std::uint64_t number = node.word_at(autograd.number_offset);
    // A gradient is accumulated directly after the work that computed it.
    if (number == accumulates) {
        return thread.last_forward;
    }
    const std::uint64_t maker = node.word_at(autograd.thread_offset);
    if (thread.node_stack == 0 || thread.node_number != number || thread.node_thread != maker) {
        thread.node_number = number;
        thread.node_thread = maker;
        thread.node_stack = made_by(table, maker, number);
    }
    thread.last_forward = thread.node_stack;
    return thread.node_stack;
}

std::uint32_t ForwardStacks::made_by(StackTable& table, std::uint64_t thread,
                                     std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const Log& log = logs_[thread];
    const auto after = std::ranges::upper_bound(log, number, {}, &Entry::next_node);
    if (after == log.end() || (after == log.begin() && after->next_node != number + 1)) {
        return 0;
    }
    if (after->next_node == number + 1) {
        return after->stack;
    }
    // Its operation did nothing on the GPU, between two that did.
    const std::pair between{std::prev(after)->stack, after->stack};
    const auto known = commons_.find(between);
    if (known != commons_.end()) {
        return known->second;
    }
    if (table.is_unowned(between.first) || table.is_unowned(between.second)) {
        return 0;
    }
    return commons_[between] = common(table, between.first, between.second);
}

std::uint32_t ForwardStacks::with_mark(StackTable& table, std::uint32_t stack,
                                       std::uint32_t forward) {
    if (table.is_unowned(stack)) {
        return 0;
    }
    std::vector<StackFrame> frames = table.frames(stack);
    if (!frames.empty() && is_mark(frames.back(), StackMark::backward)) {
        return stack;
    }
    if (forward != 0) {
        // Of a second backward pass, the work that the first one undid.
        const std::vector<StackFrame> undone = table.frames(forward);
        if (!undone.empty() && is_mark(undone.back(), StackMark::backward)) {
            forward = std::uint32_t(undone.back().instruction);
        }
    }
    frames.push_back({std::uint64_t(StackMark::backward), std::int64_t(forward)});
    return table.intern(frames).id;
}

// What both stacks are in: their outermost frames that are equal, and the modules called there.
std::uint32_t ForwardStacks::common(StackTable& table, std::uint32_t left, std::uint32_t right) {
    const std::vector<StackFrame> stacks[]{table.frames(left), table.frames(right)};
    const std::span<const StackFrame> frames[]{without_marks(stacks[0]), without_marks(stacks[1])};
    const auto equal_at_end = [](std::span<const StackFrame> one,
                                 std::span<const StackFrame> other) {
        const auto [first, _] =
            std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
        return std::size_t(first - one.rbegin());
    };
    const std::span<const StackFrame> shared = frames[0].last(equal_at_end(frames[0], frames[1]));
    std::vector<StackFrame> found(shared.begin(), shared.end());
    const auto modules_of = [](const std::vector<StackFrame>& stack) {
        std::vector<StackFrame> marks;
        std::ranges::copy_if(stack, std::back_inserter(marks), [](const StackFrame& frame) {
            return is_mark(frame, StackMark::module);
        });
        return marks;
    };
    const std::uint64_t code = table.modules().code();
    const auto calls = std::size_t(std::ranges::count(shared, code, &StackFrame::code));
    const std::vector<StackFrame> modules[]{modules_of(stacks[0]), modules_of(stacks[1])};
    const std::size_t most = std::min(calls, equal_at_end(modules[0], modules[1]));
    found.insert(found.end(), modules[0].end() - std::ptrdiff_t(most), modules[0].end());
    return found.empty() ? 0 : table.intern(found).id;
}

}  // namespace gpuviz::record
