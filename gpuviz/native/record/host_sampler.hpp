#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "record/activity_log.hpp"
#include "record/fork_safe_mutex.hpp"
#include "record/stack_table.hpp"
#include "record/stack_walker.hpp"

namespace gpuviz::record {

// Samples what threads that launch do between their CUDA calls: rows of `host_samples`.
//
// Its thread looks at each of them once a millisecond, less often while nothing changes, and never
// takes the GIL. A call costs its thread a few nanoseconds. Until a thread has launched, the
// sampler's thread sleeps.
class HostSampler {
  public:
    // A gap shorter than this is what a launch costs.
    static constexpr std::int64_t least_gap_ns = 250'000;

    // All must outlive it; `walker.can_observe()`.
    HostSampler(StackWalker& walker, StackTable& stacks, std::size_t max_stacks, ActivityLog& log);
    HostSampler(const HostSampler&) = delete;
    HostSampler& operator=(const HostSampler&) = delete;
    ~HostSampler();

    void start();
    // Waits until its thread has ended, which needs no GIL.
    void stop() noexcept;

    // To be called by a thread around each of its CUDA calls, which may be nested.
    void entered(std::int64_t time_ns) noexcept;
    void exited(std::int64_t time_ns, bool is_work) noexcept;

    // Nobody reports calls from now on: no thread is sampled until it has launched again.
    void forget_threads() noexcept;

    // Adds a row for a garbage collection that the calling thread has done.
    void collected(std::int64_t began_ns, std::int64_t ended_ns, std::uint32_t stack) noexcept;

    // CPU time of its thread.
    [[nodiscard]] std::int64_t cpu_ns() const noexcept { return cpu_ns_.load(); }

  private:
    // What a thread tells about itself, and what its last samples were.
    struct Thread {
        std::uint32_t id = 0;
        std::atomic<const void*> state{nullptr};  // StackWalker::calling_thread()
        std::atomic<int> depth{0};                // of nested calls
        std::atomic<std::int64_t> exit_ns{0};
        std::atomic<std::int64_t> sampled_ns{0};    // when the gap began that has a row
        std::atomic<std::int64_t> gap_began_ns{0};  // the last such gap that has ended
        std::atomic<std::int64_t> gap_ended_ns{0};
        std::atomic<bool> has_ended{false};

        // Of the sampler's thread.
        int file = -1;
        std::int64_t gap_ns = 0;  // when the gap of the run began; 0: no run
        HostSampleRow run{};      // times on the clock of clock.hpp
    };
    // Of the calling thread, which `number_` must agree with; plain, so that access is quick.
    struct OfThread {
        std::uint64_t owner;
        Thread* thread;
    };
    static OfThread& of_calling_thread() noexcept {
        thread_local constinit OfThread mine{};
        return mine;
    }
    struct Ending;

    void sample_until_stopped();
    // Samples all threads; returns when to sample again.
    std::int64_t sample(std::int64_t now_ns);
    std::int64_t sample(Thread& thread, std::int64_t now_ns);
    [[nodiscard]] HostState state_of(Thread& thread, std::uint32_t& holder) noexcept;
    void end_run(Thread& thread, std::int64_t end_ns) noexcept;
    void remove(Thread& thread, std::int64_t now_ns) noexcept;
    [[nodiscard]] Thread* add_calling_thread() noexcept;

    StackWalker& walker_;
    StackTable& stacks_;
    std::size_t max_stacks_;
    ActivityLog& log_;
    std::atomic<std::uint64_t> number_;  // among all objects of this class; new when it forgets
    // Held while it samples, so that a fork leaves no lock of stacks and code held in the child.
    ForkSafeMutex sampling_{ForkSafeMutex::Level::device};
    std::mutex mutex_;  // guards the next three
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<std::shared_ptr<Thread>> threads_;
    std::thread sampler_;
    std::atomic<std::int64_t> cpu_ns_{0};
};

}  // namespace gpuviz::record
