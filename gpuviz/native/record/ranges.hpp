#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/activity_log.hpp"

namespace gpuviz::record {

// The open ranges of one session, and the current range of each thread. Thread-safe, without the
// GIL. Every begin and end writes a row; a range may end on another thread, and out of order.
class Ranges {
  public:
    // The domain of ranges that pop() does not end.
    static constexpr std::uint64_t no_domain = 0;

    explicit Ranges(ActivityLog& log) noexcept;
    Ranges(const Ranges&) = delete;
    Ranges& operator=(const Ranges&) = delete;

    // Replaces clock.hpp, for programs with simulated time. The clock must not throw or call the
    // session.
    void set_clock(std::function<std::int64_t()> clock);

    void start() noexcept { recording_ = true; }
    // Ends all open ranges; no range begins afterwards.
    void stop() noexcept;

    // Begins a range on the calling thread and returns its id; 0 if not recording, or out of
    // memory.
    [[nodiscard]] std::uint32_t begin(std::string_view name, RangeKind kind,
                                      std::uint64_t domain = no_domain) noexcept;
    // Begins a range that is no thread's current range, and no parent of others.
    [[nodiscard]] std::uint32_t begin_detached(std::string_view name, RangeKind kind) noexcept;
    // Does nothing for 0 and for ranges that have ended.
    void end(std::uint32_t id) noexcept;
    // Ends the innermost range of the calling thread and this domain, if there is one.
    void pop(std::uint64_t domain) noexcept;
    // The number of open ranges of this domain on the calling thread.
    [[nodiscard]] std::size_t depth(std::uint64_t domain) noexcept;

    // The innermost range of the calling thread; 0 if none. Locks only at a thread's first call
    // while ranges are recorded.
    [[nodiscard]] std::uint32_t current() noexcept {
        if (!any_.load(std::memory_order_relaxed)) {
            return 0;
        }
        const Cached& cached = cache();
        if (cached.owner != this || cached.made_ns != made_ns_) [[unlikely]] {
            return current_of_new_thread();
        }
        return cached.thread->current.load(std::memory_order_relaxed);
    }

  private:
    struct Open {
        std::uint32_t id;
        std::uint64_t domain;
    };
    struct Thread {
        std::atomic<std::uint32_t> current{0};
        std::vector<Open> open;  // innermost last; guarded by mutex_
    };
    struct OpenRange {
        RangeRow row;
        Thread* thread;  // null: detached
    };
    // The session, possibly deleted, that the calling thread used last.
    struct Cached {
        const Ranges* owner;
        std::int64_t made_ns;
        Thread* thread;
    };

    static Cached& cache() noexcept {
        thread_local constinit Cached cached{};
        return cached;
    }
    [[nodiscard]] std::uint32_t current_of_new_thread() noexcept;
    [[nodiscard]] std::uint32_t add(std::string_view name, RangeKind kind, std::uint64_t domain,
                                    bool is_detached) noexcept;
    // The following require mutex_.
    [[nodiscard]] std::int64_t time_ns() const;
    // Throws std::bad_alloc.
    [[nodiscard]] Thread& calling_thread();
    void end_locked(std::uint32_t id, std::int64_t end_ns) noexcept;
    void leave(Thread& thread, std::uint32_t id) noexcept;

    ActivityLog& log_;
    const std::int64_t made_ns_;  // distinguishes it from an earlier object at the same address
    std::atomic<bool> recording_{false};
    std::atomic<bool> any_{false};  // whether one ever began
    std::mutex mutex_;              // guards the rest
    std::function<std::int64_t()> clock_;
    std::uint32_t last_id_ = 0;
    std::unordered_map<std::uint32_t, OpenRange> open_;
    std::unordered_map<std::uint32_t, Thread*> by_thread_id_;
    std::deque<Thread> threads_;
};

}  // namespace gpuviz::record
