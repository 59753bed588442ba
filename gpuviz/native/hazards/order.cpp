#include "hazards/order.hpp"

#include <algorithm>

namespace gpuviz::hazards {

Order::Order(bool strict_threads) : strict_threads_(strict_threads), defaults_(1), hosts_(1) {
    streams_.push_back({.kind = StreamKind::legacy, .tail = {}});
    defaults_[0].slot = legacy;
}

Slot Order::legacy_of(Device device) {
    if (device >= defaults_.size()) defaults_.resize(device + std::size_t(1));
    std::optional<Slot>& slot = defaults_[device].slot;
    if (!slot) {
        streams_.push_back({.kind = StreamKind::legacy, .device = device, .tail = {}});
        slot = static_cast<Slot>(streams_.size() - 1);
    }
    return *slot;
}

Slot Order::create_stream(StreamKind kind, Device device) {
    if (device >= defaults_.size()) defaults_.resize(device + std::size_t(1));
    // Everything enqueued from now on is ordered after a stream whose end the host knows, so that
    // its slot can count on for another one.
    const auto settled = std::find_if(destroyed_.begin(), destroyed_.end(), [&](Slot slot) {
        return streams_[slot].holds == 0 && is_settled({slot, streams_[slot].last});
    });
    if (settled == destroyed_.end()) {
        streams_.push_back({.kind = kind, .device = device, .tail = {}});
        return static_cast<Slot>(streams_.size() - 1);
    }
    const Slot slot = *settled;
    destroyed_.erase(settled);
    std::erase(defaults_[streams_[slot].device].unseen, slot);
    Stream& stream = streams_[slot];
    const std::uint64_t last = stream.last;
    stream = {.kind = kind, .device = device, .last = last, .own_start = last, .tail = {}};
    stream.tail.learn({slot, last});
    return slot;
}

void Order::destroy_stream(Slot stream) {
    streams_[stream].alive = false;
    destroyed_.push_back(stream);
}

void Order::changed(Slot slot) {
    Stream& stream = streams_[slot];
    DefaultStream& of_device = defaults_[stream.device];
    if (stream.kind == StreamKind::legacy) ++of_device.version;
    if (stream.kind == StreamKind::blocking && !stream.unseen_by_legacy) {
        stream.unseen_by_legacy = true;
        of_device.unseen.push_back(slot);
    }
}

const Clock* Order::legacy_before(const Stream& stream) const {
    const std::optional<Slot> slot = defaults_[stream.device].slot;
    return slot && stream.kind == StreamKind::blocking ? &streams_[*slot].tail : nullptr;
}

// What the stream's next action is ordered after besides the stream's earlier ones.
void Order::join_implicit(Slot slot, std::uint32_t host) {
    Stream& stream = streams_[slot];
    if (stream.thread_seen != host || stream.host_seen != hosts_[host].version) {
        stream.tail.join(hosts_[host].knows);
        stream.thread_seen = host;
        stream.host_seen = hosts_[host].version;
    }
    DefaultStream& of_device = defaults_[stream.device];
    if (stream.legacy_seen != of_device.version) {
        if (const Clock* tail = legacy_before(stream)) stream.tail.join(*tail);
        stream.legacy_seen = of_device.version;
    }
    if (stream.kind != StreamKind::legacy) return;
    for (const Slot each : of_device.unseen) {
        stream.tail.join(streams_[each].tail);
        streams_[each].unseen_by_legacy = false;
    }
    of_device.unseen.clear();
}

Moment Order::act(Slot slot, std::uint32_t thread, bool programmatic) {
    const std::uint32_t host = host_of(thread);
    Stream& stream = streams_[slot];
    stream.own_start = stream.last;
    if (programmatic && stream.last > 0) {
        stream.own_start = std::max(stream.last - 1, hosts_[host].knows[slot]);
        if (const Clock* tail = legacy_before(stream)) {
            stream.own_start = std::max(stream.own_start, (*tail)[slot]);
        }
        if (stream.kind == StreamKind::legacy) {
            for (const Slot each : default_of(slot).unseen) {
                stream.own_start = std::max(stream.own_start, streams_[each].tail[slot]);
            }
        }
    }
    join_implicit(slot, host);
    stream.tail.learn({slot, ++stream.last});
    changed(slot);
    return {slot, stream.last};
}

Start Order::start_of_last(Slot slot) const {
    return {streams_[slot].tail, {slot, streams_[slot].own_start}};
}

Clock Order::next_start(Slot slot, std::uint32_t thread) {
    Clock start = streams_[slot].tail;
    start.join(known_to(thread));
    if (const Clock* tail = legacy_before(streams_[slot])) start.join(*tail);
    if (is_legacy(slot)) {
        for (const Slot each : default_of(slot).unseen) start.join(streams_[each].tail);
    }
    return start;
}

Clock Order::everything() const {
    Clock all;
    for (const Stream& each : streams_) all.join(each.tail);
    return all;
}

void Order::follow(Slot slot, const Clock& clock) {
    streams_[slot].tail.join(clock);
    changed(slot);
}

void Order::follow_all(Slot slot) {
    for (Slot each = 0; each < streams_.size(); ++each) {
        streams_[slot].tail.learn({each, streams_[each].last});
    }
    changed(slot);
}

std::uint32_t Order::host_of(std::uint32_t thread) {
    if (!strict_threads_) return 0;
    const auto [found, is_new] = host_of_thread_.try_emplace(thread, std::uint32_t(hosts_.size()));
    if (is_new) hosts_.emplace_back();
    return found->second;
}

const Clock& Order::known_to(std::uint32_t thread) { return hosts_[host_of(thread)].knows; }

void Order::learn(std::uint32_t thread, const Clock& clock) {
    Host& host = hosts_[host_of(thread)];
    host.knows.join(clock);
    ++host.version;
}

void Order::synchronize(std::uint32_t thread, Slot stream) {
    learn(thread, streams_[stream].tail);
    if (!is_legacy(stream)) return;
    for (const Slot each : default_of(stream).unseen) learn(thread, streams_[each].tail);
}

void Order::synchronize_device(std::uint32_t thread, Device device) {
    if (defaults_.size() == 1) return synchronize_all(thread);  // the same, in less time
    Host& host = hosts_[host_of(thread)];
    for (const Stream& each : streams_) {
        if (each.device == device) host.knows.join(each.tail);
    }
    ++host.version;
}

void Order::synchronize_all(std::uint32_t thread) {
    Host& host = hosts_[host_of(thread)];
    for (Slot each = 0; each < streams_.size(); ++each) {
        host.knows.learn({each, streams_[each].last});
    }
    ++host.version;
}

Moment Order::access_by(std::uint32_t thread) {
    const std::uint32_t number = host_of(thread);
    if (!hosts_[number].slot) hosts_[number].slot = create_stream(StreamKind::non_blocking);
    Host& host = hosts_[number];
    const Moment moment{*host.slot, ++streams_[*host.slot].last};
    streams_[*host.slot].tail.learn(moment);
    host.knows.learn(moment);
    ++host.version;
    return moment;
}

}  // namespace gpuviz::hazards
