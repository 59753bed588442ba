#include "record/session.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "record/clock.hpp"
#include "record/page_guard.hpp"
#include "record/pinned_copies.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {

Session::Session(const SessionOptions& options, std::unique_ptr<StackWalker> walker)
    : options_(options),
      stacks_(options.max_stacks),
      walker_(std::move(walker)),
      log_(std::make_unique<ActivityLog>()),
      ranges_(std::make_unique<Ranges>(*log_)),
      touches_(options.launch_blocks ? std::make_unique<BlockTouches>() : nullptr),
      pinned_copies_(options.checks_pinned ? std::make_unique<PinnedCopies>(*log_) : nullptr),
      page_guard_(options.guards_pages ? std::make_unique<PageGuard>(*this) : nullptr),
      sampler_(options.host_samples && walker_ && walker_->can_observe()
                   ? std::make_unique<HostSampler>(*walker_, stacks_, options.max_stacks, *log_)
                   : nullptr),
      shared_(std::make_unique<Shared>(log_->streams)) {
    Ring<MemoryEvent>::check_capacity(options.ring_capacity);
    if (options.interval.count() <= 0) {
        throw std::invalid_argument("The interval between two drains must be positive, got " +
                                    std::to_string(options.interval.count()) + " microseconds.");
    }
}

Session::~Session() {
    stop();
    for (const auto& ring : rings_) {
        delete ring.load();
    }
}

EventRing& Session::sink(int device) {
    if (device < 0 || device >= max_devices) {
        throw std::out_of_range("The device must be between 0 and " +
                                std::to_string(max_devices - 1) + ", got " +
                                std::to_string(device) + ".");
    }
    std::atomic<EventRing*>& place = rings_[std::size_t(device)];
    EventRing* ring = place.load(std::memory_order_acquire);
    if (ring == nullptr) {
        auto made =
            std::make_unique<EventRing>(options_.ring_capacity, log_->memory_cost, touches_.get());
        if (place.compare_exchange_strong(ring, made.get(), std::memory_order_acq_rel)) {
            ring = made.release();
        }
    }
    return *ring;
}

void Session::start(bool starts_clock) {
    const std::lock_guard only(lifecycle_);
    if (process_ != 0) {
        throw std::logic_error(running_ ? "This session is already recording."
                                        : "This session has recorded; make a new one.");
    }
    process_ = getpid();
    log_->await_start();
    if (starts_clock) {
        start_clock();
    }
    shared_->thread = std::thread([this, &shared = *shared_] { collect_until_stopped(shared); });
    pthread_setname_np(shared_->thread.native_handle(), "gpuviz-collect");
    if (sampler_) {
        sampler_->start();
    }
    running_ = true;
    ranges_->start();
    if (page_guard_) {
        page_guard_->start();
    }
}

void Session::start_clock() noexcept {
    const std::int64_t now = now_ns();
    wall_start_ns_ = read_clock_ns(CLOCK_REALTIME);
    start_ns_ = now;
    log_->start(now);
}

std::int64_t Session::since_start(std::int64_t time_ns) const noexcept {
    return start_ns_ == 0 ? 0 : log_->since_start(time_ns);
}

void Session::stop() {
    abandon_if_forked();
    const std::lock_guard only(lifecycle_);
    if (!running_) {
        return;
    }
    ranges_->stop();
    if (page_guard_) {
        page_guard_->stop();
    }
    if (sampler_) {
        sampler_->stop();
    }
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->stopping = true;
    }
    shared_->wake.notify_one();
    shared_->thread.join();
    running_ = false;
}

std::vector<EventColumns> Session::take(bool flush) {
    abandon_if_forked();
    const std::lock_guard lock(shared_->mutex);
    if (flush && running_) {
        drain(*shared_);
    }
    return shared_->collector.take(flush);
}

void Session::set_drain_hook(std::function<void()> hook) {
    abandon_if_forked();
    const std::lock_guard lock(shared_->mutex);
    shared_->on_drain = std::move(hook);
}

const char* Session::stack_method() const noexcept { return walker_ ? walker_->method() : "none"; }

ActionCounts Session::dropped() const noexcept {
    ActionCounts total{};
    for (const auto& place : rings_) {
        if (const EventRing* ring = place.load(std::memory_order_acquire)) {
            const ActionCounts counts = ring->dropped();
            for (std::size_t action = 0; action < action_count; ++action) {
                total[action] += counts[action];
            }
        }
    }
    return total;
}

std::size_t Session::bytes() const {
    std::size_t total = stacks_.bytes() + log_->bytes();
    for (const auto& place : rings_) {
        if (const EventRing* ring = place.load(std::memory_order_acquire)) {
            total += ring->bytes();
        }
    }
    const std::lock_guard lock(shared_->mutex);
    return total + shared_->collector.bytes();
}

void Session::abandon_after_fork() noexcept {
    // At the fork another thread may have held any of these locks, and the collector may have been
    // writing columns, so leak them and create new ones.
    static_cast<void>(shared_.release());
    log_->abandon();
    static_cast<void>(log_.release());
    static_cast<void>(ranges_.release());
    static_cast<void>(touches_.release());
    static_cast<void>(sampler_.release());
    log_ = std::make_unique<ActivityLog>();
    ranges_ = std::make_unique<Ranges>(*log_);
    shared_ = std::make_unique<Shared>(log_->streams);
    new (&lifecycle_) std::mutex;
    running_ = false;
}

void Session::abandon_if_forked() noexcept {
    if (running_ && process_ != getpid()) {
        abandon_after_fork();
    }
}

void Session::collect_until_stopped(Shared& shared) {
    std::unique_lock lock(shared.mutex);
    std::chrono::microseconds pause = options_.interval;
    while (!shared.wake.wait_for(lock, pause, [&] { return shared.stopping; })) {
        const std::size_t fullest = drain(shared);
        // Producers never signal, which would need a system call; after a burst the collector polls
        // sooner instead.
        pause = fullest > options_.ring_capacity / 8 ? options_.interval / 16 : options_.interval;
        collector_cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    drain(shared);
    collector_cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// If out of memory for columns, the events stay in the rings, which then count drops.
std::size_t Session::drain(Shared& shared) noexcept {
    std::size_t fullest = 0;
    if (shared.on_drain) {
        shared.on_drain();
    }
    if (touches_) {
        touches_->begin();
    }
    for (const auto& place : rings_) {
        if (EventRing* ring = place.load(std::memory_order_acquire)) {
            const std::size_t taken = ring->drain([&](std::span<const MemoryEvent> events) {
                const std::size_t done = shared.collector.append(events, *log_);
                if (touches_) {
                    touches_->collect(events.first(done));
                }
                return done;
            });
            events_ = shared.collector.rows();
            fullest = std::max(fullest, taken);
        }
    }
    if (touches_) {
        touches_->resolve(*log_);
    }
    return fullest;
}

}  // namespace gpuviz::record
