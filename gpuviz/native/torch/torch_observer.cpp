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
    if (!observer.is_recording_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard lock(*observer.mutex_);
    if (observer.session_ != nullptr) {
        const record::SampledCost::Call call(observer.session_->log().memory_cost);
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
    if (entry.device < 0 || entry.device >= record::Session::max_devices) {
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
        DeviceMemory& device = devices_[entry.device];
        const std::uint32_t owner = owner_of({entry.pool[0], entry.pool[1]});
        event.pool = 2 * owner + (is_large_by_size(event.action, event.size) ? 1 : 0);
        switch (event.action) {
            case Action::alloc:
                device.allocated(event, sizes_);
                note_workspace(event);
                break;
            case Action::free_requested:
            case Action::free_completed:
                if (!device.freed(event)) return;
                break;
            case Action::segment_alloc:
            case Action::segment_map:
                device.mapped(event);
                break;
            case Action::segment_free:
            case Action::segment_unmap:
                if (!device.unmapped(event)) return;
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

void TorchObserver::note_workspace(const MemoryEvent& event) {
    if (std::ranges::find(workspaces_, event.requested_size) != workspaces_.end()) {
        record::ActivityLog& log = session_->log();
        log.tensors.append({.time = log.since_start(event.time_ns),
                            .device = std::int16_t(event.device),
                            .address = event.address,
                            .category = record::Category::workspace,
                            .name = 0});
    }
}

void TorchObserver::set_workspaces(std::vector<std::uint64_t> sizes) {
    const std::lock_guard lock(*mutex_);
    workspaces_ = std::move(sizes);
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
    if (session_ != nullptr) {
        add_segments(segments);
        add_blocks(blocks);
    }
}

void TorchObserver::update(const std::vector<Segment>& segments, const std::vector<Block>& blocks) {
    const std::lock_guard lock(*mutex_);
    if (session_ != nullptr) {
        remove_blocks(blocks);
        remove_segments(segments);
        grow_runs(segments);
        add_segments(segments);
        add_blocks(blocks);
    }
}

void TorchObserver::add_segments(const std::vector<Segment>& segments) {
    for (const Segment& each : segments) {
        DeviceMemory& device = devices_[each.device];
        if (home_at(device.homes, each.address) != device.homes.end()) {
            continue;
        }
        MemoryEvent event = new_event(
            each.is_expandable ? Action::segment_map : Action::segment_alloc, each.device);
        event.address = each.address;
        event.size = each.size;
        event.stream = each.stream;
        event.pool = 2 * owner_of(each.pool) + (each.is_large ? 1 : 0);
        device.mapped(event);
        push(event);
    }
}

void TorchObserver::add_blocks(const std::vector<Block>& blocks) {
    for (const Block& each : blocks) {
        DeviceMemory& device = devices_[each.device];
        const auto home = home_at(device.homes, each.address);
        if (home == device.homes.end() || device.lives.contains(each.address)) {
            continue;
        }
        const DeviceMemory::Live live{each.size, each.requested_size, home->second.pool,
                                      each.is_pending};
        device.lives.emplace(each.address, live);
        push_of_block(Action::alloc, each.device, each.address, live);
        if (each.is_pending) {
            push_of_block(Action::free_requested, each.device, each.address, live);
        }
    }
}

void TorchObserver::remove_blocks(const std::vector<Block>& remaining) {
    std::map<std::pair<int, std::uint64_t>, const Block*> known;
    for (const Block& each : remaining) {
        known.emplace(std::pair{each.device, each.address}, &each);
    }
    for (auto& [number, device] : devices_) {
        device.requested = device.lives.end();
        for (auto live = device.lives.begin(); live != device.lives.end();) {
            const auto found = known.find({number, live->first});
            const bool stays = found != known.end() && found->second->size == live->second.size &&
                               found->second->requested_size == live->second.requested_size &&
                               (found->second->is_pending || !live->second.is_pending);
            const bool is_freed = !stays || found->second->is_pending;
            if (is_freed && !live->second.is_pending) {
                push_of_block(Action::free_requested, number, live->first, live->second);
                live->second.is_pending = true;
            }
            if (stays) {
                ++live;
                continue;
            }
            push_of_block(Action::free_completed, number, live->first, live->second);
            live = device.lives.erase(live);
        }
    }
}

void TorchObserver::remove_segments(const std::vector<Segment>& remaining) {
    for (auto& [number, device] : devices_) {
        // What remains of the homes: whole segments, and parts of runs.
        std::map<std::uint64_t, const Segment*> known;
        for (const Segment& each : remaining) {
            if (each.device == number) {
                known.emplace(each.address, &each);
            }
        }
        const DeviceMemory::Homes before = device.homes;
        for (const auto& [address, home] : before) {
            if (!home.is_expandable) {
                const auto found = known.find(address);
                if (found == known.end() || found->second->size != home.size) {
                    push_of_home(Action::segment_free, number, address, home.size, home);
                    device.homes.erase(address);
                }
                continue;
            }
            std::uint64_t at = address;
            const std::uint64_t end = address + home.size;
            const auto unmap_until = [&](std::uint64_t until) {
                if (at < until) {
                    push_of_home(Action::segment_unmap, number, at, until - at, home);
                    static_cast<void>(cut_run(device.homes, at, until));
                }
            };
            for (const auto& [start, segment] : known) {
                if (start < end && start + segment->size > at) {
                    unmap_until(std::max(at, start));
                    at = std::max(at, std::min(end, start + segment->size));
                }
            }
            unmap_until(end);
        }
    }
}

// Maps what is new of runs of pages that have grown.
void TorchObserver::grow_runs(const std::vector<Segment>& segments) {
    for (const Segment& each : segments) {
        if (!each.is_expandable) {
            continue;
        }
        DeviceMemory& device = devices_[each.device];
        const std::uint64_t end = each.address + each.size;
        for (std::uint64_t at = each.address; at < end;) {
            const auto home = home_at(device.homes, at);
            if (home != device.homes.end()) {
                at = home->first + home->second.size;
                continue;
            }
            const auto next = device.homes.upper_bound(at);
            const std::uint64_t until =
                next == device.homes.end() ? end : std::min(end, next->first);
            MemoryEvent event = new_event(Action::segment_map, each.device);
            event.address = at;
            event.size = until - at;
            event.stream = each.stream;
            event.pool = 2 * owner_of(each.pool) + (each.is_large ? 1 : 0);
            device.mapped(event);
            push(event);
            at = until;
        }
    }
}

void TorchObserver::push_of_home(Action action, int device, std::uint64_t address,
                                 std::uint64_t size, const DeviceMemory::Home& home) {
    MemoryEvent event = new_event(action, device);
    event.address = address;
    event.size = size;
    event.stream = home.stream;
    event.pool = home.pool;
    push(event);
}

void TorchObserver::push_of_block(Action action, int device, std::uint64_t address,
                                  const DeviceMemory::Live& live) noexcept {
    MemoryEvent event = new_event(action, device);
    event.address = address;
    event.size = live.size;
    event.requested_size = live.requested_size;
    const auto home = home_at(devices_[device].homes, address);
    event.stream = home == devices_[device].homes.end() ? 0 : home->second.stream;
    event.pool = live.pool;
    if (action == Action::alloc && !workspaces_.empty() &&
        live.requested_size == workspaces_.front()) {
        note_workspace(event);
    }
    push(event);
}

std::vector<int> TorchObserver::devices() const {
    const std::lock_guard lock(*mutex_);
    std::vector<int> seen;
    seen.reserve(devices_.size());
    for (const auto& [device, state] : devices_) {
        seen.push_back(device);
    }
    return seen;
}

}  // namespace gpuviz::torch
