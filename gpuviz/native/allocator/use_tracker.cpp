#include "allocator/use_tracker.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "allocator/size_classes.hpp"

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
    segments_[address] = {address + size, normal(stream)};
    update_only_stream();
}

void UseTracker::remove_segment(Address address) {
    const std::lock_guard lock(mutex_);
    segments_.erase(address);
    update_only_stream();
}

void UseTracker::update_only_stream() {
    StreamHandle only = no_stream;
    for (const auto& [address, segment] : segments_) {
        if (only != no_stream && segment.stream != only) {
            only = no_stream;
            break;
        }
        only = segment.stream;
    }
    only_stream_.store(only, std::memory_order_relaxed);
}

void UseTracker::begin(bool tracks_uses, bool tracks_streams) {
    const std::lock_guard lock(mutex_);
    tracks_uses_ = tracks_uses;
    tracks_streams_ = tracks_streams;
    follows_order_ = tracks_streams;
    order_ = hazards::Order(false);
    slots_ = 1;
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
    slots_ = std::max(slots_, slot + 1);
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
        slots_ = std::max(slots_, stream.slot + 1);
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
        const auto after = segments_.upper_bound(address);
        if (after == segments_.begin() || address >= std::prev(after)->second.end) {
            continue;
        }
        const StreamHandle own = std::prev(after)->second.stream;
        if (own == handle) {
            continue;
        }
        Stream& stream = stream_of_call(handle);
        if (is_implied(own, handle)) {
            continue;
        }
        if (use == nullptr) {
            if (is_capturing(handle)) {
                return;
            }
            use = std::make_shared<LastUse>(device_, handle, order_.act(stream.slot, 0), epoch_,
                                            stack);
        }
        add_use(address, use);
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
    if (use_count_ > most_uses_) {
        drop_complete_uses();
    }
}

void UseTracker::add_use(Address address, const std::shared_ptr<LastUse>& use) {
    Uses& uses = uses_[address / kMinBlockSize * kMinBlockSize];
    const auto earlier = std::find_if(uses.begin(), uses.end(), [&](const auto& each) {
        return each->epoch == use->epoch && each->moment.slot == use->moment.slot;
    });
    if (earlier == uses.end()) {
        uses.push_back(use);
    } else {
        *earlier = use;
    }
    use_count_.store(uses_.size(), std::memory_order_relaxed);
}

// Bounds the memory of programs that use many addresses of few blocks.
void UseTracker::drop_complete_uses() {
    const OwnCalls own;
    std::unordered_map<const LastUse*, bool> is_complete;
    const auto is_done = [&](const std::shared_ptr<LastUse>& use) {
        const auto [found, is_new] = is_complete.try_emplace(use.get(), false);
        if (is_new) {
            found->second = use->is_recorded() && device_.is_complete(use->event());
        }
        return found->second;
    };
    for (auto& [address, uses] : uses_) {
        std::erase_if(uses, is_done);
    }
    std::erase_if(uses_, [](const auto& entry) { return entry.second.empty(); });
    most_uses_ = std::max(most_uses_, 2 * uses_.size());
    use_count_.store(uses_.size(), std::memory_order_relaxed);
}

std::vector<std::shared_ptr<LastUse>> UseTracker::take(Address address, std::uint64_t size,
                                                       StreamHandle own) {
    const std::lock_guard lock(mutex_);
    Uses newest;
    const auto first = uses_.lower_bound(address);
    const auto last = uses_.lower_bound(address + size);
    for (auto entry = first; entry != last; ++entry) {
        for (const std::shared_ptr<LastUse>& use : entry->second) {
            const auto same = std::find_if(newest.begin(), newest.end(), [&](const auto& each) {
                return each->epoch == use->epoch && each->moment.slot == use->moment.slot;
            });
            if (same == newest.end()) {
                newest.push_back(use);
            } else if ((*same)->moment.index < use->moment.index) {
                *same = use;
            }
        }
    }
    uses_.erase(first, last);
    use_count_.store(uses_.size(), std::memory_order_relaxed);
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
    use_count_ = 0;
}

// The device synchronizes with destroyed streams as well.
Clock UseTracker::everything() const {
    Clock all;
    for (Slot slot = 0; slot < slots_; ++slot) {
        all.join(order_.tail(slot));
    }
    return all;
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
            return promises(everything());
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
    if (is_work ? !succeeded || addresses.empty() ||
                      handle == only_stream_.load(std::memory_order_relaxed)
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
