#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "record/stack_table.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {

// The call stack of a thread that waits for others to do its work, such as the threads of torch's
// backward pass. Those have none of their own, or one that begins with a function that they call,
// as a hook. Thread-safe.
class LentStack {
  public:
    // Whether the calling thread does such work: not negative if it does.
    using Work = std::int32_t (*)();

    // While several threads lend, it is not known for whom a thread works, and none is lent.
    void begin(std::uint32_t stack, Work work) noexcept;
    void end() noexcept;

    // A stack of the calling thread, or none (0), with the lent one behind it if the thread does
    // such work.
    [[nodiscard]] std::uint32_t behind(std::uint32_t own, StackTable& table) const noexcept {
        const std::uint32_t lent = get();
        return lent == 0 || own == 0 ? own + lent : joined(own, lent, table);
    }

  private:
    // The stack for the calling thread; 0 if it does no such work.
    [[nodiscard]] std::uint32_t get() const noexcept {
        const std::uint32_t stack = stack_.load(std::memory_order_relaxed);
        if (stack == 0 || current_thread_id() == lender_.load(std::memory_order_relaxed)) {
            return 0;
        }
        const Work work = work_.load(std::memory_order_acquire);
        return work != nullptr && work() >= 0 ? stack : 0;
    }
    [[nodiscard]] static std::uint32_t joined(std::uint32_t own, std::uint32_t lent,
                                              StackTable& table) noexcept;

    std::mutex mutex_;  // guards lenders_
    int lenders_ = 0;
    std::atomic<std::uint32_t> stack_{0};
    std::atomic<std::uint32_t> lender_{0};  // a thread
    std::atomic<Work> work_{nullptr};
};

}  // namespace gpuviz::record
