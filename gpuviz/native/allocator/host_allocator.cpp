#include "allocator/host_allocator.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace gpuviz::allocator {

using device::Address;
using device::Device;
using device::StreamHandle;
using record::Action;
using record::CallSite;

HostAllocator::HostAllocator(Device& device, const Settings& settings, Clock clock)
    : device_(device), clock_(std::move(clock)), settings_(settings), trace_(clock_) {
    add_device(device);
}

void HostAllocator::add_device(Device& device) {
    const std::lock_guard lock(mutex_);
    devices_.insert_or_assign(device.ordinal(), &device);
}

Address HostAllocator::allocate(std::uint64_t size, const CallSite& site) {
    if (size == 0) {
        return 0;
    }
    const std::lock_guard lock(mutex_);
    trace_.set_site(site);
    process_events();
    const std::uint64_t needed = HostCache::rounded(size, settings_);
    HostBlock* const cached = cache_.take(needed);
    return hand_out(cached != nullptr ? *cached : make_block(needed, size), size);
}

std::optional<Address> HostAllocator::try_allocate(std::uint64_t size, const CallSite& site) {
    if (size == 0) {
        return Address{0};
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    // Recording the events of deferred blocks may wait for the device.
    if (!lock.owns_lock() || !deferred_.empty()) {
        return std::nullopt;
    }
    trace_.set_site(site);
    process_events();
    HostBlock* const cached = cache_.take(HostCache::rounded(size, settings_));
    return cached == nullptr ? std::nullopt : std::optional(hand_out(*cached, size));
}

Address HostAllocator::hand_out(HostBlock& block, std::uint64_t requested_size) {
    block.allocated = true;
    block.requested_size = requested_size;
    trace_.write(Action::alloc, block, requested_size);
    statistics_.active_requests.increase(1);
    statistics_.active_bytes.increase(std::int64_t(block.size));
    return block.address;
}

void HostAllocator::free(Address address, const CallSite& site) {
    if (address == 0) {
        return;
    }
    const std::lock_guard lock(mutex_);
    trace_.set_site(site);
    begin_free(allocated_block(address));
    process_deferred();
}

void HostAllocator::free_after(Address address, Device& device,
                               std::initializer_list<StreamHandle> streams, const CallSite& site) {
    const std::lock_guard lock(mutex_);
    trace_.set_site(site);
    HostBlock& block = allocated_block(address);
    const StreamHandle* previous = nullptr;
    for (const StreamHandle& stream : streams) {
        const bool is_new = previous == nullptr || stream != *previous;
        // In a recording the question would look like the program's own, which orders its work.
        if (is_new && (trace_.has_log() || !device.is_idle(stream))) {
            use_now(block, device, stream);
        }
        previous = &stream;
    }
    begin_free(block);
    process_deferred();
}

HostBlock& HostAllocator::allocated_block(Address address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || !found->second.allocated) {
        throw std::invalid_argument("Address " + std::to_string(address) +
                                    " is not an allocated block of pinned memory.");
    }
    return found->second;
}

void HostAllocator::begin_free(HostBlock& block) {
    trace_.write(Action::free_requested, block, block.requested_size);
    block.allocated = false;
    deferred_.push_back(&block);
}

bool HostAllocator::record_event(Address address, Device& device, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    HostBlock* const block = block_around(address);
    if (block == nullptr) {
        return false;
    }
    if (device.is_capturing(stream)) {
        block->captured = true;
        return true;
    }
    block->add_use({&device, stream});
    return true;
}

// Events are recorded at once, because the program may destroy the stream before the free. Complete
// ones are dropped, so that copies without allocations in between do not pile them up.
void HostAllocator::used(int device, StreamHandle stream,
                         std::span<const Address> addresses) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        trace_.set_site({});
        const auto user = devices_.find(device);
        if (user == devices_.end()) {
            return;
        }
        for (const Address address : addresses) {
            if (HostBlock* const block = block_around(address)) {
                use_now(*block, *user->second, stream);
            }
        }
        events_of(*user->second).reap([this](HostBlock* block) { events_passed(block); });
    } catch (const std::exception&) {
        // The device has failed, or this is the child of a fork; both end the use of memory.
    }
}

void HostAllocator::use_now(HostBlock& block, Device& device, StreamHandle stream) {
    if (device.can_record(stream)) {
        events_of(device).record(&block, stream);
    } else if (device.is_capturing(stream)) {
        block.captured = true;
    } else {
        block.add_use({&device, stream});
    }
}

void HostAllocator::end_stream(Device& device, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    trace_.set_site({});
    for (auto& [address, block] : blocks_) {
        const auto use = std::find(block.uses.begin(), block.uses.end(), HostUse{&device, stream});
        if (use != block.uses.end() && device.can_record(stream)) {
            events_of(device).record(&block, stream);
            block.uses.erase(use);
        }
    }
    process_deferred();
}

void HostAllocator::empty_cache(const CallSite& site) {
    const std::lock_guard lock(mutex_);
    trace_.set_site(site);
    process_events();
    release_cached();
}

void HostAllocator::apply_settings(const Settings& settings) {
    const std::lock_guard lock(mutex_);
    settings_ = settings;
}

void HostAllocator::record_into(record::ActivityLog& log) {
    const std::lock_guard lock(mutex_);
    trace_.set_log(&log);
    for (const auto& [address, block] : blocks_) {
        trace_.describe(block);
    }
}

void HostAllocator::stop_recording() {
    const std::lock_guard lock(mutex_);
    trace_.set_log(nullptr);
}

HostStatistics HostAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

void HostAllocator::reset_peak_stats() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_peak();
}

void HostAllocator::reset_accumulated_stats() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_accumulated();
}

HostBlock& HostAllocator::make_block(std::uint64_t size, std::uint64_t requested_size) {
    if (HostBlock* const block = try_make_block(size)) {
        return *block;
    }
    release_cached();
    if (HostBlock* const block = try_make_block(size)) {
        return *block;
    }
    synchronize_events();
    release_cached();
    if (HostBlock* const block = try_make_block(size)) {
        return *block;
    }
    trace_.write(Action::oom, {.address = 0, .size = size}, requested_size);
    throw HostOutOfMemory(size);
}

HostBlock* HostAllocator::try_make_block(std::uint64_t size) {
    const std::int64_t began_ns = clock_();
    const std::optional<Address> address = device_.allocate_host(size);
    if (!address) {
        return nullptr;
    }
    statistics_.host_alloc_time.add_ns(clock_() - began_ns);
    statistics_.num_host_alloc += 1;
    statistics_.allocations.increase(1);
    statistics_.allocated_bytes.increase(std::int64_t(size));
    filter_.add(*address, size);
    HostBlock& block =
        blocks_.emplace(*address, HostBlock{.address = *address, .size = size}).first->second;
    trace_.write(Action::segment_alloc, block, 0);
    return &block;
}

HostBlock* HostAllocator::block_around(Address address) {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
        return nullptr;
    }
    HostBlock& block = std::prev(after)->second;
    return block.allocated && address - block.address < block.size ? &block : nullptr;
}

EventQueue<HostBlock>& HostAllocator::events_of(Device& device) {
    return events_.try_emplace(device.ordinal(), device).first->second;
}

// Uses by streams on which no event can be recorded now remain.
void HostAllocator::record_events(HostBlock& block) {
    for (std::size_t at = 0; at < block.uses.size();) {
        const HostUse use = block.uses[at];
        if (!use.device->can_record(use.stream)) {
            ++at;
            continue;
        }
        events_of(*use.device).record(&block, use.stream);
        block.uses.erase(block.uses.begin() + std::ptrdiff_t(at));
    }
}

void HostAllocator::process_deferred() {
    for (std::size_t at = 0; at < deferred_.size();) {
        HostBlock& block = *deferred_[at];
        record_events(block);
        if (!block.uses.empty()) {
            ++at;
            continue;
        }
        deferred_.erase(deferred_.begin() + std::ptrdiff_t(at));
        events_passed(&block);
    }
}

void HostAllocator::process_events() {
    process_deferred();
    for (auto& [ordinal, events] : events_) {
        events.reap([this](HostBlock* block) { events_passed(block); });
    }
}

void HostAllocator::synchronize_events() {
    for (auto& [ordinal, events] : events_) {
        events.synchronize([](const HostBlock* block) { return !block->allocated; },
                           [this](HostBlock* block) { events_passed(block); });
    }
}

void HostAllocator::events_passed(HostBlock* block) {
    if (!block->allocated && !block->is_used()) {
        finish_free(*block);
    }
}

void HostAllocator::finish_free(HostBlock& block) {
    trace_.write(Action::free_completed, block, block.requested_size);
    statistics_.active_requests.decrease(1);
    statistics_.active_bytes.decrease(std::int64_t(block.size));
    if (block.size > settings_.pinned_max_cached_size) {
        release_block(block);
    } else {
        cache_.add(block);
    }
}

void HostAllocator::release_block(HostBlock& block) {
    trace_.write(Action::segment_free, block, 0);
    const std::int64_t began_ns = clock_();
    device_.free_host(block.address, block.size);
    statistics_.host_free_time.add_ns(clock_() - began_ns);
    statistics_.num_host_free += 1;
    statistics_.allocations.decrease(1);
    statistics_.allocated_bytes.decrease(std::int64_t(block.size));
    blocks_.erase(block.address);
}

void HostAllocator::release_cached() {
    while (HostBlock* const block = cache_.take_any()) {
        release_block(*block);
    }
}

// Ignores errors: if the driver is already gone, its memory is released.
void HostAllocator::release_everything() noexcept {
    try {
        for (auto& [ordinal, events] : events_) {
            events.discard();
        }
        for (const auto& [address, block] : blocks_) {
            device_.free_host(address, block.size);
        }
    } catch (const device::DeviceError&) {
        return;
    }
}

}  // namespace gpuviz::allocator
