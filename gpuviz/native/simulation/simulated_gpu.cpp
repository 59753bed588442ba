#include "simulation/simulated_gpu.hpp"

#include <exception>
#include <stdexcept>

#include "simulation/followed_call.hpp"
#include "simulation/simulated_call.hpp"

namespace gpuviz::simulation {

using device::EventHandle;
using device::StreamHandle;
using record::CallSite;
using record::Session;
using record::SynchronizationKind;

void SimulatedGpu::attach(Session& session, const SimulatedTracing& tracing) {
    clock_->wait_until(session.start_ns());
    {
        const std::lock_guard lock(mutex_);
        catch_up();
        records_.attach(&session, streams_.all(), tracing);
    }
    session.set_drain_hook([this] { poll(); });
}

void SimulatedGpu::detach(const Patience& patience) {
    std::unique_lock lock(mutex_);
    Session* const session = records_.session();
    if (session == nullptr) {
        return;
    }
    lock.unlock();
    if (record::HostSampler* const sampler = session->host_sampler()) {
        sampler->forget_threads();  // what follows the last call is not between two calls
    }
    if (record::StreamCalls* const follower = session->stream_calls(device_)) {
        follower->finish();
    }
    lock.lock();
    std::exception_ptr ended;
    try {
        wait(lock, streams_.newest(), patience);
    } catch (...) {
        ended = std::current_exception();
    }
    records_.attach(nullptr, streams_.all());
    lock.unlock();
    session->set_drain_hook(nullptr);
    if (ended) {
        std::rethrow_exception(ended);
    }
}

void SimulatedGpu::pause() {
    const std::lock_guard lock(mutex_);
    catch_up();
    if (record::HostSampler* const sampler = records_.host_sampler()) {
        sampler->forget_threads();
    }
    records_.pause(true, streams_.all());
}

void SimulatedGpu::resume() {
    const std::lock_guard lock(mutex_);
    records_.pause(false, streams_.all());
}

std::uint64_t SimulatedGpu::recorded_calls() {
    const std::lock_guard lock(mutex_);
    return records_.calls();
}

void SimulatedGpu::set_clock_of(Session& session) {
    session.ranges().set_clock([this] { return clock_->now(); });
}

void SimulatedGpu::stop_clock_of(Session& session) {
    session.ranges().set_clock([ended_at = clock_->now()] { return ended_at; });
}

void SimulatedGpu::abandon_recording() {
    const std::lock_guard lock(mutex_);
    records_.attach(nullptr, streams_.all());
}

record::StreamCalls* SimulatedGpu::follower() {
    // The session may end once the lock is released.
    const std::lock_guard lock(mutex_);
    Session* const session = records_.session();
    return session == nullptr ? nullptr : session->stream_calls(device_);
}

Session* SimulatedGpu::session() {
    const std::lock_guard lock(mutex_);
    return records_.session();
}

void SimulatedGpu::poll() noexcept {
    const std::lock_guard lock(mutex_);
    catch_up();
}

void SimulatedGpu::catch_up() {
    schedule_.advance(clock_->now(), ended_);
    records_.write(ended_);
    ended_.clear();
}

void SimulatedGpu::wait(std::unique_lock<record::ForkSafeMutex>& lock, std::span<const Id> works,
                        const Patience& patience) {
    catch_up();
    for (const Id work : works) {
        while (!schedule_.has_ended(work)) {
            // Work added in the meantime cannot make other work end earlier.
            let_pass(lock, schedule_.next_ns().value(), patience);
        }
    }
}

void SimulatedGpu::let_pass(std::unique_lock<record::ForkSafeMutex>& lock, std::int64_t until_ns,
                            const Patience& patience) {
    struct Unlocked {
        explicit Unlocked(std::unique_lock<record::ForkSafeMutex>& held) : lock(held) {
            lock.unlock();
        }
        ~Unlocked() { lock.lock(); }
        std::unique_lock<record::ForkSafeMutex>& lock;
    };
    {
        const Unlocked unlocked(lock);
        while (patience && until_ns - clock_->now() > clock_->patience_ns()) {
            clock_->wait_until(clock_->now() + clock_->patience_ns());
            patience();
        }
        clock_->wait_until(until_ns);
    }
    catch_up();
}

SimulatedGpu::Id SimulatedGpu::add(Call& call, GpuStream& stream, const GpuWork& work,
                                   Id also_after) {
    std::vector<Id> after = streams_.before(stream);
    after.push_back(also_after);
    stream.last = schedule_.add(work, after, call.began_ns + launch_latency_ns);
    return stream.last;
}

StreamHandle SimulatedGpu::create_stream(bool non_blocking, int priority, const CallSite& site) {
    const Call call(*this, "cuStreamCreateWithPriority", site);
    GpuStream& stream = streams_.create(
        non_blocking ? record::StreamKind::non_blocking : record::StreamKind::blocking, priority);
    records_.stream_created(stream, call.began_ns);
    return stream.handle;
}

void SimulatedGpu::destroy_stream(StreamHandle handle, const CallSite& site) {
    const FollowedCall followed(
        *this, {.kind = record::StreamCall::Kind::stream_destroy, .stream = handle}, site);
    const Call call(*this, "cuStreamDestroy_v2", site);
    const GpuStream stream = streams_.at(handle);
    streams_.destroy(handle, schedule_);
    records_.stream_destroyed(stream, call.began_ns);
}

void SimulatedGpu::synchronize_stream(StreamHandle handle, const CallSite& site,
                                      const Patience& patience) {
    const FollowedCall followed(
        *this, {.kind = record::StreamCall::Kind::stream_synchronize, .stream = handle}, site);
    Call call(*this, "cuStreamSynchronize", site);
    const GpuStream stream = streams_.at(handle);
    call.wait_for(streams_.pending(stream), patience);
    call.synchronized(SynchronizationKind::stream_synchronize, stream.row);
}

bool SimulatedGpu::has_stream(StreamHandle handle) {
    const std::lock_guard lock(mutex_);
    return streams_.find(handle) != nullptr;
}

bool SimulatedGpu::is_blocking(StreamHandle handle) {
    const std::lock_guard lock(mutex_);
    return streams_.at(handle).kind == record::StreamKind::blocking;
}

bool SimulatedGpu::is_idle(StreamHandle handle) {
    const std::lock_guard lock(mutex_);
    catch_up();
    const GpuStream& stream = streams_.at(handle);
    for (const Id work : streams_.pending(stream)) {
        if (!schedule_.has_ended(work)) {
            return false;
        }
    }
    succeeded(SynchronizationKind::stream_synchronize, stream.row, 0, 0);
    return true;
}

void SimulatedGpu::succeeded(SynchronizationKind kind, std::uint32_t stream, std::uint32_t event,
                             std::uint64_t sync_id) {
    const std::int64_t now = clock_->now();
    records_.synchronization({.time = now,
                              .end = now,
                              .kind = kind,
                              .device = std::int16_t(device_),
                              .context = Call::context,
                              .stream = stream,
                              .event = event,
                              .event_sync_id = sync_id,
                              .correlation = ++correlations_});
}

void SimulatedGpu::synchronize_device(const CallSite& site, const Patience& patience) {
    const FollowedCall followed(*this, {.kind = record::StreamCall::Kind::device_synchronize},
                                site);
    Call call(*this, "cuCtxSynchronize", site);
    call.wait_for(streams_.newest(), patience);
    call.synchronized(SynchronizationKind::context_synchronize);
}

EventHandle SimulatedGpu::create_event(const CallSite& site) {
    const Call call(*this, "cuEventCreate", site);
    EventHandle event = events_.size() + unused_events_.size() + 1;
    if (!unused_events_.empty()) {
        event = unused_events_.back();
        unused_events_.pop_back();
    }
    events_[event] = {.created_in = records_.recording()};
    return event;
}

void SimulatedGpu::destroy_event(EventHandle event, const CallSite& site) {
    const FollowedCall followed(
        *this, {.kind = record::StreamCall::Kind::event_destroy, .event = event}, site);
    const Call call(*this, "cuEventDestroy_v2", site);
    static_cast<void>(event_at(event));
    events_.erase(event);
    unused_events_.push_back(event);
}

SimulatedGpu::Event& SimulatedGpu::event_at(EventHandle event) {
    const auto found = events_.find(event);
    if (found == events_.end()) {
        throw std::invalid_argument("The simulated GPU has no event " + std::to_string(event) +
                                    "; it was destroyed, or belongs to another GPU.");
    }
    return found->second;
}

void SimulatedGpu::record_event(EventHandle handle, StreamHandle stream_handle,
                                const CallSite& site) {
    const FollowedCall followed(
        *this,
        {.kind = record::StreamCall::Kind::event_record, .stream = stream_handle, .event = handle},
        site);
    Call call(*this, "cuEventRecord", site);
    Event& event = event_at(handle);
    GpuStream& stream = streams_.at(stream_handle);
    event.work = add(call, stream, {});
    event.sync_id = ++sync_ids_;
    records_.expect(event.work,
                    record::SynchronizationRow{.time = 0,
                                               .end = 0,
                                               .kind = SynchronizationKind::event_record,
                                               .device = std::int16_t(device_),
                                               .context = Call::context,
                                               .stream = stream.row,
                                               .event = std::uint32_t(handle),
                                               .event_sync_id = event.sync_id,
                                               .correlation = call.correlation});
}

void SimulatedGpu::wait_event(StreamHandle stream_handle, EventHandle handle,
                              const CallSite& site) {
    const FollowedCall followed(*this,
                                {.kind = record::StreamCall::Kind::stream_wait_event,
                                 .stream = stream_handle,
                                 .event = handle},
                                site);
    Call call(*this, "cuStreamWaitEvent", site);
    const Event& event = event_at(handle);
    GpuStream& stream = streams_.at(stream_handle);
    if (event.sync_id != 0) {
        add(call, stream, {}, event.work);
    }
    if (!is_empty(event)) {
        call.synchronized(SynchronizationKind::stream_wait_event, stream.row, std::uint32_t(handle),
                          event.sync_id);
    }
}

void SimulatedGpu::synchronize_event(EventHandle handle, const CallSite& site,
                                     const Patience& patience) {
    const FollowedCall followed(
        *this, {.kind = record::StreamCall::Kind::event_synchronize, .event = handle}, site);
    Call call(*this, "cuEventSynchronize", site);
    const Event event = event_at(handle);
    call.wait_for(std::span(&event.work, 1), patience);
    if (!is_empty(event)) {
        call.synchronized(SynchronizationKind::event_synchronize, 0, std::uint32_t(handle),
                          event.sync_id);
    }
}

bool SimulatedGpu::is_complete(EventHandle handle) {
    const std::lock_guard lock(mutex_);
    catch_up();
    const Event& event = event_at(handle);
    if (!schedule_.has_ended(event.work)) {
        return false;
    }
    if (event.sync_id != 0) {
        succeeded(SynchronizationKind::event_synchronize, 0, std::uint32_t(handle), event.sync_id);
    }
    return true;
}

}  // namespace gpuviz::simulation
