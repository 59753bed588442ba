#include "allocator/use_tracker.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace gpuviz::allocator {

using device::Address;
using device::StreamHandle;
using hazards::Clock;
using hazards::Slot;
using hazards::StreamKind;
using record::StreamCall;

namespace {

constexpr StreamHandle legacy = 0;
constexpr StreamHandle named_legacy = 1;  // CU_STREAM_LEGACY

StreamHandle normal(StreamHandle stream) noexcept {
    return stream == named_legacy ? legacy : stream;
}

// What an event holds, or what the host knows, if the thread's present call succeeds. Work that
// other threads enqueue during the call is not covered.
struct Promise {
    const void* tracker = nullptr;
    std::uint64_t epoch = 0;
    Clock clock;
};
thread_local Promise promise;

}  // namespace

thread_local bool UseTracker::is_own_call = false;

void UseTracker::add_segment(Address address, std::uint64_t size, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    segments_.add(address, size, normal(stream));
}

void UseTracker::remove_segment(Address address) {
    const std::lock_guard lock(mutex_);
    segments_.remove(address);
}

void UseTracker::begin(bool tracks_uses, bool tracks_streams) {
    const std::lock_guard lock(mutex_);
    tracks_uses_ = tracks_uses;
    tracks_streams_ = tracks_streams;
    follows_order_ = tracks_streams;
    order_ = hazards::Order(false);
    ++epoch_;
    is_running_ = true;
}

void UseTracker::finish() noexcept {
    const std::lock_guard lock(mutex_);
    is_running_ = false;
    follows_order_ = false;
    for (auto& [handle, stream] : streams_) {
        try {
            record(stream, handle);
        } catch (const std::exception&) {
            continue;  // the device is gone
        }
    }
    streams_.clear();
    events_.clear();
    ++epoch_;
}

UseTracker::Stream& UseTracker::stream_at(StreamHandle handle) {
    const auto found = streams_.find(handle);
    if (found != streams_.end()) {
        return found->second;
    }
    if (handle == legacy) {
        return streams_[handle] = {.slot = hazards::Order::legacy,
                                   .kind = StreamKind::legacy,
                                   .is_described = true};
    }
    const Slot slot = order_.create_stream(StreamKind::non_blocking);
    return streams_[handle] = {.slot = slot, .kind = StreamKind::non_blocking};
}

// The stream of the present call, which therefore exists and can be asked.
UseTracker::Stream& UseTracker::stream_of_call(StreamHandle handle) {
    Stream& stream = stream_at(handle);
    if (stream.is_described || is_capturing(handle)) {
        return stream;
    }
    stream.is_described = true;
    const OwnCalls own;
    if (device_.is_blocking(handle)) {
        stream.kind = StreamKind::blocking;
        order_.destroy_stream(stream.slot);
        stream.slot = order_.create_stream(StreamKind::blocking);
    }
    return stream;
}

bool UseTracker::exists(StreamHandle handle) const {
    const auto stream = streams_.find(normal(handle));
    return tracks_streams_ && is_running_ &&
           (normal(handle) == legacy ||
            (stream != streams_.end() && stream->second.is_described && !stream->second.is_ending));
}

bool UseTracker::is_capturing(StreamHandle handle) {
    const OwnCalls own;
    return device_.is_capturing(handle);
}

// Whether all work of `own` is ordered after earlier work of `user` in any case.
bool UseTracker::is_implied(StreamHandle own, StreamHandle user) {
    const auto is_blocking = [&](StreamHandle handle) {
        return stream_at(handle).kind == StreamKind::blocking;
    };
    return (own == legacy && is_blocking(user)) || (user == legacy && is_blocking(own));
}

void UseTracker::record(Stream& stream, StreamHandle handle) {
    if (stream.unrecorded.empty() || is_capturing(handle)) {
        return;
    }
    const OwnCalls own;
    for (const std::shared_ptr<LastUse>& use : std::exchange(stream.unrecorded, {})) {
        const bool is_needed = use.use_count() > 1;
        if (is_needed && !use->is_recorded()) {
            use->record();
        }
    }
}

// An event that is recorded after the legacy stream has more work would wait for that, too.
void UseTracker::record_if_legacy(StreamHandle handle) {
    if (handle != legacy) {
        return;
    }
    for (auto& [blocking, stream] : streams_) {
        if (stream.kind == StreamKind::blocking) {
            record(stream, blocking);
        }
    }
}

void UseTracker::record_missing() {
    const std::lock_guard lock(mutex_);
    for (auto& [handle, stream] : streams_) {
        record(stream, handle);
    }
}

void UseTracker::use(StreamHandle handle, std::span<const std::uint64_t> addresses,
                     std::uint32_t stack) {
    std::shared_ptr<LastUse> use;
    for (const std::uint64_t address : addresses) {
        const std::optional<StreamHandle> own = segments_.owner_of(address);
        if (!own || *own == handle) {
            continue;
        }
        Stream& stream = stream_of_call(handle);
        if (is_implied(*own, handle)) {
            continue;
        }
        if (use == nullptr) {
            if (is_capturing(handle)) {
                return;
            }
            use = std::make_shared<LastUse>(device_, handle, order_.act(stream.slot, 0), epoch_,
                                            stack);
        }
        uses_.add(address, use);
    }
    if (use == nullptr) {
        return;
    }
    follows_order_ = true;
    Stream& stream = stream_at(handle);
    stream.unrecorded.push_back(use);
    // An event of the legacy stream waits for all blocking streams, and only its own thread can
    // record one on a per-thread stream.
    constexpr StreamHandle tag_mask = 0x7;
    constexpr StreamHandle per_thread_tag = 0x2;
    if (handle == legacy || (handle & tag_mask) == per_thread_tag) {
        record(stream, handle);
    }
    if (uses_.has_many()) {
        const OwnCalls own;
        uses_.drop_complete(device_);
    }
}

std::vector<std::shared_ptr<LastUse>> UseTracker::take(Address address, std::uint64_t size,
                                                       StreamHandle own) {
    const std::lock_guard lock(mutex_);
    LastUses::Uses newest = uses_.take(address, size);
    if (is_running_ && !newest.empty()) {
        const Clock start = order_.next_start(stream_at(normal(own)).slot, 0);
        std::erase_if(newest, [&](const std::shared_ptr<LastUse>& use) {
            return use->epoch == epoch_ && start.has(use->moment);
        });
    }
    for (const std::shared_ptr<LastUse>& use : newest) {
        if (!use->is_recorded() && !is_capturing(use->stream)) {
            const OwnCalls own_calls;
            use->record();
        }
    }
    return newest;
}

void UseTracker::forget_uses() {
    const std::lock_guard lock(mutex_);
    uses_.clear();
}

void UseTracker::enter(const StreamCall& call) noexcept {
    if (is_own_call || !follows_order_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard lock(mutex_);
    promise.tracker = nullptr;
    if (!is_running_) {
        return;
    }
    try {
        on_enter(call);
    } catch (const std::exception&) {
        promise.tracker = nullptr;
    }
}

void UseTracker::on_enter(const StreamCall& call) {
    const StreamHandle handle = normal(call.stream);
    const auto promises = [&](const Clock& clock) { promise = {this, epoch_, clock}; };
    switch (call.kind) {
        case StreamCall::Kind::work:
            if (tracks_streams_) {
                static_cast<void>(stream_of_call(handle));
            }
            record_if_legacy(handle);
            [[fallthrough]];
        case StreamCall::Kind::stream_destroy: {
            const auto stream = streams_.find(handle);
            if (stream != streams_.end()) {
                stream->second.is_ending = call.kind == StreamCall::Kind::stream_destroy;
                record(stream->second, handle);
            }
            return;
        }
        case StreamCall::Kind::stream_wait_event: {
            Stream& stream = stream_of_call(handle);
            record(stream, handle);
            record_if_legacy(handle);
            const auto event = events_.find(call.event);
            return event == events_.end() || is_capturing(handle) ? void()
                                                                  : promises(event->second);
        }
        case StreamCall::Kind::event_record: {
            record_if_legacy(handle);
            const Stream& stream = stream_of_call(handle);
            return is_capturing(handle) ? void() : promises(order_.next_start(stream.slot, 0));
        }
        case StreamCall::Kind::event_synchronize: {
            const auto event = events_.find(call.event);
            return event == events_.end() ? void() : promises(event->second);
        }
        case StreamCall::Kind::stream_synchronize: {
            const Stream& stream = stream_of_call(handle);
            return promises(handle == legacy ? order_.next_start(stream.slot, 0)
                                             : order_.tail(stream.slot));
        }
        case StreamCall::Kind::device_synchronize:
            return promises(order_.everything());
        case StreamCall::Kind::event_destroy:
            events_.erase(call.event);
            return;
    }
}

void UseTracker::exit(const StreamCall& call, bool succeeded,
                      std::span<const std::uint64_t> addresses, std::uint32_t stack) noexcept {
    if (is_own_call) {
        return;
    }
    const StreamHandle handle = normal(call.stream);
    const bool is_work = call.kind == StreamCall::Kind::work;
    if (is_work ? !succeeded || addresses.empty() || segments_.is_only(handle)
                : !follows_order_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!is_running_) {
        return;
    }
    try {
        if (is_work && tracks_uses_) {
            use(handle, addresses, stack);
        } else if (!is_work && succeeded) {
            on_exit(call);
        }
    } catch (const std::exception&) {
        ++failures_;
    }
}

void UseTracker::on_exit(const StreamCall& call) {
    const bool is_promised = promise.tracker == this && promise.epoch == epoch_;
    promise.tracker = nullptr;
    const Clock& clock = promise.clock;
    switch (call.kind) {
        case StreamCall::Kind::event_record:
            if (is_promised) {
                events_[call.event] = clock;
            } else {
                events_.erase(call.event);
            }
            return;
        case StreamCall::Kind::stream_wait_event:
            return is_promised ? order_.follow(stream_at(normal(call.stream)).slot, clock) : void();
        case StreamCall::Kind::event_synchronize:
        case StreamCall::Kind::stream_synchronize:
        case StreamCall::Kind::device_synchronize:
            return is_promised ? order_.learn(0, clock) : void();
        case StreamCall::Kind::stream_destroy: {
            const auto stream = streams_.find(normal(call.stream));
            if (stream != streams_.end() && stream->first != legacy) {
                order_.destroy_stream(stream->second.slot);
                streams_.erase(stream);
            }
            return;
        }
        case StreamCall::Kind::event_destroy:
        case StreamCall::Kind::work:
            return;
    }
}

}  // namespace gpuviz::allocator
