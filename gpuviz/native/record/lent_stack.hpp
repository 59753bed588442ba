#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace gpuviz::record {

// The call stack of a thread that waits for others to do its work: those have none of their own, as
// the threads of torch's backward pass. Thread-safe.
class LentStack {
  public:
    // Whether the calling thread does such work: not negative if it does.
    using Work = std::int32_t (*)();

    // While several threads lend, it is not known for whom a thread works, and none is lent.
    void begin(std::uint32_t stack, Work work) noexcept;
    void end() noexcept;

    // The stack for the calling thread; 0 if it does no such work.
    [[nodiscard]] std::uint32_t get() const noexcept {
        const std::uint32_t stack = stack_.load(std::memory_order_relaxed);
        if (stack == 0) {
            return 0;
        }
        const Work work = work_.load(std::memory_order_acquire);
        return work != nullptr && work() >= 0 ? stack : 0;
    }

  private:
    std::mutex mutex_;  // guards lenders_
    int lenders_ = 0;
    std::atomic<std::uint32_t> stack_{0};
    std::atomic<Work> work_{nullptr};
};

}  // namespace gpuviz::record
