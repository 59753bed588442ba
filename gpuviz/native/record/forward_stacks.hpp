#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record/stack_table.hpp"

namespace gpuviz::record {

// Functions of an autograd engine, and the offsets of what its nodes contain.
struct Autograd {
    std::int32_t (*graph)();       // not negative in a thread that runs a backward pass
    std::uint64_t (*next_node)();  // the number of the node that this thread makes next
    std::uint64_t (*thread)();     // the number that the engine gives this thread
    void (*current_node)(void*);   // writes a counted reference to the node that runs; see below
    std::size_t number_offset;     // in a node
    std::size_t thread_offset;     // in a node: the thread that made it
};

// A node that the calling thread runs, alive as long as this.
class CurrentNode {
  public:
    explicit CurrentNode(const Autograd& autograd) noexcept { autograd.current_node(words_); }
    CurrentNode(const CurrentNode&) = delete;
    CurrentNode& operator=(const CurrentNode&) = delete;
    ~CurrentNode();

    [[nodiscard]] std::uint64_t address() const noexcept { return words_[0]; }
    [[nodiscard]] std::uint64_t word_at(std::size_t offset) const noexcept {
        return *reinterpret_cast<const std::uint64_t*>(address() + offset);
    }

  private:
    static constexpr std::uint64_t untouched = ~std::uint64_t{0};
    // torch returns a std::shared_ptr, which has two words, and from 2.13 on a c10::intrusive_ptr,
    // which has one.
    std::uint64_t words_[2]{0, untouched};
};

// For the work of backward passes, the call stacks of the forward work that it undoes.
//
// A thread numbers the nodes that it makes, each before the operation whose gradient it computes:
// what follows a node with the number n is done while the next one is n + 1. Thread-safe.
class ForwardStacks {
  public:
    // What is captured from now on is told apart by these; null ends this. They must stay.
    void set_autograd(const Autograd* autograd) noexcept { autograd_.store(autograd); }

    // The stack for what the calling thread does now: the given one, in a backward pass with a mark
    // of the forward one.
    [[nodiscard]] std::uint32_t marked(StackTable& table, std::uint32_t stack) noexcept {
        const Autograd* const autograd = autograd_.load(std::memory_order_acquire);
        return autograd == nullptr || stack == 0 ? stack : find(*autograd, table, stack);
    }

    // Whether a node was made before what has this stack, so that it may have a backward pass.
    [[nodiscard]] bool has_node(std::uint32_t stack) const;

  private:
    // A stack, and the number of the next node when it was first captured with it.
    struct Entry {
        std::uint64_t next_node;
        std::uint32_t stack;
    };
    using Log = std::vector<Entry>;                                    // by next_node
    static constexpr std::size_t most_entries = std::size_t{1} << 17;  // of a thread
    static constexpr std::uint64_t accumulates = ~std::uint64_t{0};

    struct Thread;  // what is remembered of the calling one

    [[nodiscard]] std::uint32_t find(const Autograd& autograd, StackTable& table,
                                     std::uint32_t stack) noexcept;
    void note(const Autograd& autograd, Thread& thread, std::uint32_t stack);
    [[nodiscard]] std::uint32_t forward_of(const Autograd& autograd, StackTable& table,
                                           Thread& thread);
    [[nodiscard]] std::uint32_t made_by(StackTable& table, std::uint64_t thread,
                                        std::uint64_t number);
    // 0 if the stack cannot have one yet.
    [[nodiscard]] static std::uint32_t with_mark(StackTable& table, std::uint32_t stack,
                                                 std::uint32_t forward);
    [[nodiscard]] static std::uint32_t common(StackTable& table, std::uint32_t left,
                                              std::uint32_t right);

    std::atomic<const Autograd*> autograd_{nullptr};
    mutable std::mutex mutex_;  // for what follows
    std::map<std::uint64_t, Log> logs_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> commons_;
    std::unordered_set<std::uint32_t> with_nodes_;
};

}  // namespace gpuviz::record
