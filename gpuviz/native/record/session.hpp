#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "record/activity_log.hpp"
#include "record/block_touches.hpp"
#include "record/collector.hpp"
#include "record/event_ring.hpp"
#include "record/forward_stacks.hpp"
#include "record/host_sampler.hpp"
#include "record/lent_stack.hpp"
#include "record/pinned_uses.hpp"
#include "record/ranges.hpp"
#include "record/stack_table.hpp"
#include "record/stack_walker.hpp"
#include "record/stream_calls.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {

class PageGuard;
class PinnedCopies;

struct SessionOptions {
    std::size_t ring_capacity = std::size_t{1} << 16;  // events, a power of two; one ring a device
    std::chrono::microseconds interval{5000};          // between two drains
    std::size_t max_stacks = std::size_t{1} << 17;
    bool launch_blocks = false;  // whether to find the blocks that launches touch
    bool checks_pinned = false;  // whether to look for what the host does to pinned memory
    bool guards_pages = false;   // whether to protect pinned memory that copies use
    bool host_samples = false;   // whether to sample threads between their CUDA calls
};

// One recording: a ring for each device, the collector thread that drains them into columns, and
// the call stacks. Used once; another recording needs another session.
//
// Thread-safe; stacks() and bytes() require the GIL. The collector never calls Python, so stop()
// and the destructor may wait for it anywhere. Rows are in order within a device, but not across
// devices.
class Session {
  public:
    static constexpr int max_devices = 64;

    // Without a walker every capture returns 0.
    explicit Session(const SessionOptions& options, std::unique_ptr<StackWalker> walker = nullptr);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();

    // The sink of a device, created by the first call; it lives as long as the session. Before
    // start() and after stop() it accepts events until its ring is full.
    [[nodiscard]] EventRing& sink(int device);

    // Without the clock, all that is collected is at time zero until start_clock().
    void start(bool starts_clock = true);
    // Makes this moment time zero, once.
    void start_clock() noexcept;
    // Waits until every event pushed before is in columns; does nothing unless running.
    void stop();
    [[nodiscard]] bool running() const noexcept { return running_.load(); }

    // Full chunks, oldest first; with `flush` everything pushed so far.
    [[nodiscard]] std::vector<EventColumns> take(bool flush);

    // The tables other than allocator events.
    [[nodiscard]] ActivityLog& log() noexcept { return *log_; }
    [[nodiscard]] const ActivityLog& log() const noexcept { return *log_; }
    // The ranges of each thread while the session runs.
    [[nodiscard]] Ranges& ranges() noexcept { return *ranges_; }
    // The innermost range of the calling thread, for its rows; 0: none.
    [[nodiscard]] std::uint32_t current_range() noexcept { return ranges_->current(); }
    // Null unless SessionOptions::launch_blocks.
    [[nodiscard]] BlockTouches* touches() noexcept { return touches_.get(); }

    // Null unless SessionOptions::checks_pinned.
    [[nodiscard]] PinnedCopies* pinned_copies() const noexcept { return pinned_copies_.get(); }
    // Null unless SessionOptions::guards_pages.
    [[nodiscard]] PageGuard* page_guard() const noexcept { return page_guard_.get(); }
    // Null unless SessionOptions::host_samples and the walker can observe threads.
    [[nodiscard]] HostSampler* host_sampler() noexcept { return sampler_.get(); }

    // Who follows the program's calls about the streams of a device; null: nobody. It must outlive
    // the tracer's recording, and is set before it, or as soon as the device is used.
    void set_stream_calls(int device, StreamCalls* calls) noexcept {
        if (device >= 0 && device < max_devices) {
            stream_calls_[std::size_t(device)].store(calls);
        }
    }
    [[nodiscard]] StreamCalls* stream_calls(int device) const noexcept {
        return device < 0 || device >= max_devices ? nullptr
                                                   : stream_calls_[std::size_t(device)].load();
    }

    // Who learns of copies from and to pinned memory; null: nobody. It must outlive the tracer's
    // recording.
    void set_pinned_uses(PinnedUses* uses) noexcept { pinned_uses_.store(uses); }
    [[nodiscard]] PinnedUses* pinned_uses() const noexcept { return pinned_uses_.load(); }

    // Sets a function called at the beginning of every drain, on the draining thread; null removes
    // it after waiting for a call in progress. It must not throw, and may only append rows.
    void set_drain_hook(std::function<void()> hook);

    // The stack of the calling thread, behind which is that of the thread it works for.
    [[nodiscard]] std::uint32_t capture_stack() noexcept {
        const std::uint32_t own = walker_ ? walker_->capture(stacks_) : 0;
        return forward_stacks_.marked(stacks_, lent_stack_.behind(own, stacks_));
    }
    // Where the calling thread is, for the events of its call.
    [[nodiscard]] CallSite call_site(bool stacks, Framework framework = Framework::none) noexcept {
        const SampledCost::Call call(log_->memory_cost);
        return {.stack = stacks ? capture_stack() : 0,
                .thread = current_thread_id(),
                .range = current_range(),
                .framework = framework};
    }
    // See StackWalker::capture_without_waiting().
    [[nodiscard]] std::uint32_t capture_stack_without_waiting() noexcept {
        const std::uint32_t own = walker_ ? walker_->capture_without_waiting(stacks_) : 0;
        return forward_stacks_.marked(stacks_, lent_stack_.behind(own, stacks_));
    }
    // See StackWalker::add().
    [[nodiscard]] std::uint32_t add_stack(std::span<const StackFrame> frames) noexcept {
        return walker_ ? walker_->add(stacks_, frames) : 0;
    }
    [[nodiscard]] LentStack& lent_stack() noexcept { return lent_stack_; }
    [[nodiscard]] ForwardStacks& forward_stacks() noexcept { return forward_stacks_; }
    [[nodiscard]] const ForwardStacks& forward_stacks() const noexcept { return forward_stacks_; }
    [[nodiscard]] StackTable& stacks() noexcept { return stacks_; }
    [[nodiscard]] const StackTable& stacks() const noexcept { return stacks_; }
    // Owns the stacks that their threads are still in, and settles the others. Requires the GIL.
    std::size_t settle_stacks() noexcept {
        if (walker_) {
            walker_->own_running(stacks_);
        }
        return stacks_.settle();
    }
    // See StackWalker::learn_gil().
    void learn_gil() noexcept {
        if (walker_) {
            walker_->learn_gil();
        }
    }
    // See StackWalker::first_local_of().
    [[nodiscard]] const void* first_local_of(const void* frame) const noexcept {
        return walker_ ? walker_->first_local_of(frame) : nullptr;
    }
    [[nodiscard]] const char* stack_method() const noexcept;

    // The number of events in columns.
    [[nodiscard]] std::uint64_t events() const noexcept { return events_.load(); }
    [[nodiscard]] ActionCounts dropped() const noexcept;
    // Memory in use: rings, columns not yet taken, stacks.
    [[nodiscard]] std::size_t bytes() const;
    // CPU time of the collector thread, as of its last drain.
    [[nodiscard]] std::int64_t collector_cpu_ns() const noexcept {
        return collector_cpu_ns_.load();
    }
    // CPU time of the thread that samples the others.
    [[nodiscard]] std::int64_t sampler_cpu_ns() const noexcept {
        return sampler_ ? sampler_->cpu_ns() : 0;
    }
    // Time zero of the columns, on the clock of clock.hpp and on the wall clock; 0 before
    // start_clock().
    [[nodiscard]] std::int64_t start_ns() const noexcept { return start_ns_.load(); }
    [[nodiscard]] std::int64_t wall_start_ns() const noexcept { return wall_start_ns_.load(); }
    // A time of the clock of clock.hpp in the columns; 0 before start_clock().
    [[nodiscard]] std::int64_t since_start(std::int64_t time_ns) const noexcept;

    // To be called in the child after fork(), where there is no collector thread: afterwards pushes
    // fill the rings and are dropped, nothing is collected, and nothing waits. take(), stop() and
    // the destructor detect that they run in a child; other queries do not.
    void abandon_after_fork() noexcept;

  private:
    // State shared with the collector thread; a fork may leave its locks held forever.
    struct Shared {
        explicit Shared(StreamTable& streams) : collector(streams) {}

        std::mutex mutex;  // guards all but thread
        std::condition_variable wake;
        bool stopping = false;
        Collector collector;
        std::function<void()> on_drain;
        std::thread thread;
    };

    void abandon_if_forked() noexcept;
    void collect_until_stopped(Shared& shared);
    // Returns the number of events in the fullest ring.
    std::size_t drain(Shared& shared) noexcept;

    SessionOptions options_;
    StackTable stacks_;
    std::unique_ptr<StackWalker> walker_;
    std::unique_ptr<ActivityLog> log_;
    std::unique_ptr<Ranges> ranges_;
    std::unique_ptr<BlockTouches> touches_;
    std::unique_ptr<PinnedCopies> pinned_copies_;
    std::unique_ptr<PageGuard> page_guard_;
    std::unique_ptr<HostSampler> sampler_;
    std::array<std::atomic<EventRing*>, max_devices> rings_{};
    std::array<std::atomic<StreamCalls*>, max_devices> stream_calls_{};
    std::atomic<PinnedUses*> pinned_uses_{nullptr};
    LentStack lent_stack_;
    ForwardStacks forward_stacks_;
    std::unique_ptr<Shared> shared_;
    std::mutex lifecycle_;  // one start() or stop() at a time
    std::atomic<bool> running_{false};
    int process_ = 0;  // that called start()
    std::atomic<std::uint64_t> events_{0};
    std::atomic<std::int64_t> collector_cpu_ns_{0};
    std::atomic<std::int64_t> start_ns_{0};
    std::atomic<std::int64_t> wall_start_ns_{0};
};

}  // namespace gpuviz::record
