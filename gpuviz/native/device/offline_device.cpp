#include "device/offline_device.hpp"

#include <algorithm>

namespace gpuviz::device {

void OfflineDevice::occupy(StreamHandle stream) {
    if (!is_busy(stream)) {
        busy_.push_back(stream);
    }
}

void OfflineDevice::finish(StreamHandle stream) {
    std::erase(busy_, stream);
    std::erase_if(pending_, [&](EventHandle handle) {
        Event& event = events_[handle - 1];
        event.complete = event.complete || event.stream == stream;
        return event.complete;
    });
}

void OfflineDevice::finish_all() {
    busy_.clear();
    for (const EventHandle handle : pending_) {
        events_[handle - 1].complete = true;
    }
    pending_.clear();
}

void OfflineDevice::complete(std::uint32_t label) {
    for (std::size_t last = 0; last < pending_.size(); ++last) {
        const Event event = events_[pending_[last] - 1];
        if (event.label != label + std::uint64_t{1}) {
            continue;
        }
        for (std::size_t at = 0; at <= last; ++at) {
            Event& earlier = events_[pending_[at] - 1];
            earlier.complete = earlier.complete || earlier.stream == event.stream;
        }
    }
    std::erase_if(pending_, [&](EventHandle handle) { return events_[handle - 1].complete; });
}

void OfflineDevice::write(Address address, std::uint64_t size, std::uint8_t value) {
    const auto value_at = [&](Address at) {
        const auto after = contents_.upper_bound(at);
        return after == contents_.begin() ? std::uint8_t{0} : std::prev(after)->second;
    };
    const Address end = address + size;
    const std::uint8_t behind = value_at(end);
    contents_.erase(contents_.lower_bound(address), contents_.lower_bound(end));
    contents_[address] = value;
    contents_[end] = behind;
}

bool OfflineDevice::read(const Samples& samples, void* to, StreamHandle) {
    auto* byte = static_cast<std::uint8_t*>(to);
    for (std::uint32_t piece = 0; piece < samples.count; ++piece) {
        for (std::uint32_t at = 0; at < samples.width; ++at) {
            const Address address = samples.first + piece * samples.stride + at;
            const auto after = contents_.upper_bound(address);
            *byte++ = after == contents_.begin() ? std::uint8_t{0} : std::prev(after)->second;
        }
    }
    return true;
}

void* OfflineDevice::host_memory(std::uint64_t size) {
    return host_memory_.emplace_back(std::make_unique<std::byte[]>(size)).get();
}

std::optional<Address> OfflineDevice::allocate_host(std::uint64_t size) {
    constexpr std::uint64_t page = 4096;
    if (size > most_host_used_ || host_used_ > most_host_used_ - size) {
        return std::nullopt;
    }
    host_used_ += size;
    const Address address = next_host_;
    next_host_ += (size + page - 1) / page * page;
    return address;
}

void OfflineDevice::free_host(Address, std::uint64_t size) { host_used_ -= size; }

bool OfflineDevice::is_busy(StreamHandle stream) const noexcept {
    return std::find(busy_.begin(), busy_.end(), stream) != busy_.end();
}

EventHandle OfflineDevice::record_event(StreamHandle stream) {
    const Event event{.stream = stream, .label = held_, .complete = held_ == 0 && !is_busy(stream)};
    EventHandle handle = events_.size() + 1;
    if (unused_events_.empty()) {
        events_.push_back(event);
    } else {
        handle = unused_events_.back();
        unused_events_.pop_back();
        events_[handle - 1] = event;
    }
    if (!event.complete) {
        pending_.push_back(handle);
    }
    return handle;
}

bool OfflineDevice::is_complete(EventHandle event) { return events_.at(event - 1).complete; }

void OfflineDevice::synchronize(EventHandle event) {
    if (!is_complete(event)) {
        finish(events_[event - 1].stream);
    }
}

void OfflineDevice::release(EventHandle event) {
    std::erase(pending_, event);
    unused_events_.push_back(event);
}

bool OfflineDevice::take(std::uint64_t size) noexcept {
    if (size > total_memory_ - used_) {
        return false;
    }
    used_ += size;
    return true;
}

}  // namespace gpuviz::device
