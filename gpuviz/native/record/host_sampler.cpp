#include "record/host_sampler.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "record/clock.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {
namespace {

constexpr std::int64_t period_ns = 1'000'000;
// A state that lasts is looked at less often: its end, and a short gap after it, are then known to
// this part of its length.
constexpr std::int64_t part_of_run = 64;
constexpr std::int64_t longest_period_ns = 10'000'000;
// Reading the thread's CPU time is a system call.
constexpr std::int64_t cpu_period_ns = 100'000'000;

std::uint64_t new_number() noexcept {
    static std::atomic<std::uint64_t> numbers{0};
    return ++numbers;
}

std::int64_t period_after(std::int64_t length_ns) noexcept {
    return std::clamp(length_ns / part_of_run, period_ns, longest_period_ns);
}

}  // namespace

// Keeps what a thread tells, and says when the thread has ended.
struct HostSampler::Ending {
    std::shared_ptr<Thread> thread;

    ~Ending() {
        of_calling_thread() = {};
        if (thread) {
            thread->has_ended = true;
        }
    }
};

HostSampler::HostSampler(StackWalker& walker, StackTable& stacks, std::size_t max_stacks,
                         ActivityLog& log)
    : walker_(walker), stacks_(stacks), max_stacks_(max_stacks), log_(log), number_(new_number()) {}

HostSampler::~HostSampler() { stop(); }

void HostSampler::start() {
    sampler_ = std::thread([this] { sample_until_stopped(); });
    pthread_setname_np(sampler_.native_handle(), "gpuviz-sample");
}

void HostSampler::stop() noexcept {
    if (!sampler_.joinable()) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    sampler_.join();
}

void HostSampler::entered(std::int64_t time_ns) noexcept {
    const OfThread& mine = of_calling_thread();
    if (mine.owner != number_) {
        return;
    }
    Thread& thread = *mine.thread;
    const int depth = thread.depth.load(std::memory_order_relaxed);
    thread.depth.store(depth + 1, std::memory_order_relaxed);
    const std::int64_t began_ns = thread.exit_ns.load(std::memory_order_relaxed);
    if (depth == 0 && thread.sampled_ns.load(std::memory_order_relaxed) == began_ns) {
        thread.gap_ended_ns.store(time_ns, std::memory_order_relaxed);
        thread.gap_began_ns.store(began_ns, std::memory_order_release);
    }
}

void HostSampler::exited(std::int64_t time_ns, bool is_work) noexcept {
    const OfThread& mine = of_calling_thread();
    Thread* thread = mine.owner == number_ ? mine.thread : nullptr;
    if (thread == nullptr && is_work) {
        thread = add_calling_thread();
    }
    if (thread == nullptr) {
        return;
    }
    if (is_work) {
        thread->state.store(walker_.calling_thread(), std::memory_order_relaxed);
    }
    thread->exit_ns.store(time_ns, std::memory_order_relaxed);
    const int depth = thread->depth.load(std::memory_order_relaxed);
    thread->depth.store(std::max(depth - 1, 0), std::memory_order_release);
}

HostSampler::Thread* HostSampler::add_calling_thread() noexcept {
    try {
        auto thread = std::make_shared<Thread>();
        thread->id = current_thread_id();
        thread_local Ending mine;
        if (mine.thread) {
            mine.thread->has_ended = true;  // for the sampler before
        }
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(mutex_);
            threads_.push_back(thread);
            number = number_;
        }
        mine.thread = std::move(thread);
        of_calling_thread() = {number, mine.thread.get()};
        wake_.notify_one();
        return mine.thread.get();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void HostSampler::forget_threads() noexcept {
    const std::lock_guard lock(mutex_);
    const std::lock_guard sampling(sampling_);
    number_ = new_number();
    const std::int64_t now = now_ns();
    for (const auto& thread : threads_) {
        remove(*thread, now);
    }
    threads_.clear();
}

void HostSampler::remove(Thread& thread, std::int64_t now) noexcept {
    end_run(thread, now);
    if (thread.file >= 0) {
        close(thread.file);
    }
}

void HostSampler::collected(std::int64_t began_ns, std::int64_t ended_ns,
                            std::uint32_t stack) noexcept {
    log_.host_samples.append({.time = log_.since_start(began_ns),
                              .end = log_.since_start(ended_ns),
                              .thread = current_thread_id(),
                              .stack = stack,
                              .state = HostState::collection,
                              .holder = 0,
                              .samples = 0});
}

void HostSampler::sample_until_stopped() {
    std::unique_lock lock(mutex_);
    std::int64_t cpu_read_ns = 0;
    while (!stopping_) {
        if (threads_.empty()) {
            wake_.wait(lock, [&] { return stopping_ || !threads_.empty(); });
            continue;
        }
        const std::int64_t began_ns = now_ns();
        const std::int64_t next_ns = sample(began_ns);
        if (began_ns - cpu_read_ns >= cpu_period_ns) {
            cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
            cpu_read_ns = began_ns;
        }
        wake_.wait_for(lock, std::chrono::nanoseconds(next_ns - now_ns()),
                       [&] { return stopping_; });
    }
    for (const auto& thread : threads_) {
        remove(*thread, now_ns());
    }
    threads_.clear();
    cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

std::int64_t HostSampler::sample(std::int64_t now) {
    const std::lock_guard sampling(sampling_);
    std::int64_t next_ns = now + longest_period_ns;
    std::erase_if(threads_, [&](const std::shared_ptr<Thread>& thread) {
        if (!thread->has_ended) {
            next_ns = std::min(next_ns, sample(*thread, now));
            return false;
        }
        remove(*thread, now);
        return true;
    });
    return next_ns;
}

std::int64_t HostSampler::sample(Thread& thread, std::int64_t now) {
    const bool is_inside = thread.depth.load(std::memory_order_acquire) != 0;
    const std::int64_t exit_ns = thread.exit_ns.load(std::memory_order_relaxed);
    if (thread.gap_ns != 0 && (is_inside || exit_ns != thread.gap_ns)) {
        end_run(thread, now);
    }
    if (is_inside || now - exit_ns < least_gap_ns) {
        return now + period_ns;
    }
    HostSampleRow found{};
    found.state = state_of(thread, found.holder);
    const void* const state = thread.state.load(std::memory_order_relaxed);
    // Half of the table is for stacks of the program's own calls.
    if (state != nullptr && stacks_.size() < max_stacks_ / 2) {
        found.stack = walker_.stack_of(state, stacks_);
    }
    thread.sampled_ns.store(exit_ns, std::memory_order_relaxed);
    if (thread.depth.load(std::memory_order_acquire) != 0 ||
        thread.exit_ns.load(std::memory_order_relaxed) != exit_ns) {
        return now + period_ns;  // it has left the gap meanwhile
    }
    HostSampleRow& run = thread.run;
    const bool continues = thread.gap_ns == exit_ns && run.stack == found.stack &&
                           run.state == found.state && run.holder == found.holder;
    if (!continues) {
        std::int64_t begin_ns = exit_ns;
        if (thread.gap_ns == exit_ns) {
            begin_ns = run.end + (now - run.end) / 2;  // it changed between the two samples
            end_run(thread, begin_ns);
        }
        run = found;
        run.time = begin_ns;
        run.thread = thread.id;
        thread.gap_ns = exit_ns;
    }
    run.end = now;
    ++run.samples;
    return now + period_after(now - run.time);
}

// `end_ns` is used while the gap lasts.
void HostSampler::end_run(Thread& thread, std::int64_t end_ns) noexcept {
    if (thread.gap_ns == 0) {
        return;
    }
    HostSampleRow row = thread.run;
    end_ns = std::max(row.end, end_ns);
    if (thread.gap_began_ns.load(std::memory_order_acquire) == thread.gap_ns) {
        // Also before the last sample, if the system stopped the thread while it entered a call.
        end_ns = std::min(end_ns, thread.gap_ended_ns.load(std::memory_order_relaxed));
    } else if (thread.depth.load(std::memory_order_relaxed) != 0 ||
               thread.exit_ns.load(std::memory_order_relaxed) != thread.gap_ns) {
        end_ns = row.end;  // it left the gap while its first sample was taken
    }
    row.time = log_.since_start(std::min(row.time, end_ns));
    row.end = log_.since_start(end_ns);
    log_.host_samples.append(row);
    thread.gap_ns = 0;
}

// See proc_pid_syscall(5): "running", or the system call in which it waits with its arguments.
HostState HostSampler::state_of(Thread& thread, std::uint32_t& holder) noexcept {
    if (thread.file < 0) {
        std::array<char, 64> path;
        std::snprintf(path.data(), path.size(), "/proc/self/task/%u/syscall", thread.id);
        thread.file = open(path.data(), O_RDONLY | O_CLOEXEC);
        if (thread.file < 0) {
            return HostState::unknown;
        }
    }
    std::array<char, 256> text;
    const ssize_t size = pread(thread.file, text.data(), text.size() - 1, 0);
    if (size <= 0) {
        return HostState::unknown;
    }
    text[std::size_t(size)] = '\0';
    if (std::strncmp(text.data(), "running", 7) == 0) {
        return HostState::working;
    }
    char* rest = nullptr;
    const long call = std::strtol(text.data(), &rest, 10);
    if (call < 0) {
        return HostState::working;  // a page fault
    }
    if (call == SYS_futex && walker_.is_gil(std::strtoull(rest, nullptr, 16))) {
        holder = walker_.gil_holder();
        holder = holder == thread.id ? 0 : holder;
        return HostState::gil;
    }
    return HostState::waiting;
}

}  // namespace gpuviz::record
