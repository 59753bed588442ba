#include "torch/torch_observer.hpp"

#include <algorithm>
#include <new>

#include "record/clock.hpp"
#include "record/thread_id.hpp"
#include "torch/homes.hpp"
#include "torch/pool_size.hpp"

namespace gpuviz::torch {

using record::Action;
using record::MemoryEvent;

void TorchObserver::trace(void* self, const TraceEntry* entry) noexcept {
    auto& observer = *static_cast<TorchObserver*>(self);
    if (observer.is_recording_.load(std::memory_order_relaxed)) {
        const std::lock_guard lock(*observer.mutex_);
        observer.take(*entry);
    }
}

void TorchObserver::set_session(record::Session* session, bool stacks) {
    const std::lock_guard lock(*mutex_);
    devices_.clear();
    owners_.clear();
    session_ = session;
    stacks_ = stacks;
    is_recording_ = session != nullptr;
}

void TorchObserver::abandon() noexcept {
    static_cast<void>(mutex_.release());
    mutex_ = std::make_unique<std::mutex>();
    session_ = nullptr;
    is_recording_ = false;
}

MemoryEvent TorchObserver::new_event(Action action, int device) const noexcept {
    MemoryEvent event{};
    event.time_ns = record::now_ns();
    event.action = action;
    event.device = static_cast<std::uint16_t>(device);
    event.framework = record::Framework::torch;
    return event;
}

void TorchObserver::push(const MemoryEvent& event) noexcept {
    session_->sink(event.device).push(event);
}

void TorchObserver::take(const TraceEntry& entry) noexcept {
    if (session_ == nullptr || entry.device < 0 || entry.device >= record::Session::max_devices) {
        return;
    }
    MemoryEvent event = new_event(static_cast<Action>(entry.action), entry.device);
    event.address = entry.address;
    event.size = entry.size;
    event.stream = entry.stream;
    event.stack = stacks_ ? session_->capture_stack_without_waiting() : 0;
    event.thread = record::current_thread_id();
    event.range = session_->current_range();
    try {
        Device& device = devices_[entry.device];
        const std::uint32_t owner = owner_of({entry.pool[0], entry.pool[1]});
        event.pool = 2 * owner + (is_large_by_size(event.action, event.size) ? 1 : 0);
        switch (event.action) {
            case Action::alloc:
                allocated(device, entry, event);
                break;
            case Action::free_requested:
            case Action::free_completed:
                if (!freed(device, event)) return;
                break;
            case Action::segment_alloc:
            case Action::segment_map:
                mapped(device, event);
                break;
            case Action::segment_free:
            case Action::segment_unmap:
                if (!unmapped(device, event)) return;
                break;
            case Action::oom:
                event.requested_size = event.size;
                break;
            default:
                return;
        }
    } catch (const std::bad_alloc&) {
        // The event is kept; the sizes of later blocks may be those of torch's trace.
    }
    push(event);
}

void TorchObserver::allocated(Device& device, const TraceEntry& entry, MemoryEvent& event) {
    const auto home = home_at(device.homes, entry.address);
    event.requested_size = entry.size;
    event.size = allocator::round_size(std::max<std::uint64_t>(entry.size, 1), divisions_);
    if (home != device.homes.end()) {
        event.pool = home->second.pool;
        event.size = size_in(device, *home, entry.address, event.size);
    }
    device.lives.insert_or_assign(entry.address, Live{event.size, entry.size, event.pool});
}

void TorchObserver::mapped(Device& device, const MemoryEvent& event) {
    const bool is_expandable = event.action == Action::segment_map;
    const Home home{event.size, event.stream, event.pool, is_expandable};
    if (is_expandable) {
        add_run(device.homes, event.address, home);
    } else {
        device.homes.insert_or_assign(event.address, home);
    }
}

bool TorchObserver::unmapped(Device& device, MemoryEvent& event) {
    const auto home = home_at(device.homes, event.address);
    if (home == device.homes.end()) {
        return false;  // it was mapped before the state was known
    }
    event.pool = home->second.pool;
    if (event.action == Action::segment_free) {
        device.homes.erase(home);
        return true;
    }
    return cut_run(device.homes, event.address, event.address + event.size);
}

bool TorchObserver::freed(Device& device, MemoryEvent& event) {
    const auto live = device.lives.find(event.address);
    if (live == device.lives.end()) {
        return false;  // it was freed before the state was known
    }
    event.size = live->second.size;
    event.requested_size = live->second.requested_size;
    event.pool = live->second.pool;
    if (event.action == Action::free_completed) {
        device.lives.erase(live);
    }
    return true;
}

// By torch's rule for splitting the free block at the address, which ends at the next live one.
std::uint64_t TorchObserver::size_in(const Device& device, const Homes::value_type& home,
                                     std::uint64_t address, std::uint64_t size) const {
    const auto next = device.lives.upper_bound(address);
    const std::uint64_t home_end = home.first + home.second.size;
    const std::uint64_t end =
        next == device.lives.end() ? home_end : std::min(home_end, next->first);
    const bool finely = home.second.is_expandable || home.second.pool % 2 == 0;
    return block_size(end - address, size, finely, max_split_size_);
}

std::uint32_t TorchObserver::owner_of(const Pool& pool) {
    if (pool == Pool{0, 0}) {
        return first_owner;
    }
    const auto next = static_cast<std::uint32_t>(first_owner + 1 + owners_.size());
    return owners_.try_emplace(pool, next).first->second;
}

void TorchObserver::describe(const std::vector<Segment>& segments,
                             const std::vector<Block>& blocks) {
    const std::lock_guard lock(*mutex_);
    if (session_ == nullptr) {
        return;
    }
    for (const Segment& each : segments) {
        Device& device = devices_[each.device];
        if (home_at(device.homes, each.address) != device.homes.end()) {
            continue;
        }
        MemoryEvent event = new_event(
            each.is_expandable ? Action::segment_map : Action::segment_alloc, each.device);
        event.address = each.address;
        event.size = each.size;
        event.stream = each.stream;
        event.pool = 2 * owner_of(each.pool) + (each.is_large ? 1 : 0);
        mapped(device, event);
        push(event);
    }
    for (const Block& each : blocks) {
        Device& device = devices_[each.device];
        const auto home = home_at(device.homes, each.address);
        if (home == device.homes.end() || device.lives.contains(each.address)) {
            continue;
        }
        MemoryEvent event = new_event(Action::alloc, each.device);
        event.address = each.address;
        event.size = each.size;
        event.requested_size = each.requested_size;
        event.stream = home->second.stream;
        event.pool = home->second.pool;
        device.lives.emplace(each.address, Live{each.size, each.requested_size, event.pool});
        push(event);
        if (each.is_pending) {
            event.action = Action::free_requested;
            push(event);
        }
    }
}

std::vector<int> TorchObserver::devices() const {
    const std::lock_guard lock(*mutex_);
    std::vector<int> seen;
    for (const auto& [device, state] : devices_) {
        seen.push_back(device);
    }
    return seen;
}

}  // namespace gpuviz::torch
