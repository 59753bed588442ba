#include "allocator/caching_allocator.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "record/clock.hpp"

namespace gpuviz::allocator {

using device::Address;
using device::StreamHandle;
using record::Action;
using record::CallSite;

namespace {

// With torch's message.
[[noreturn]] void throw_invalid_pointer(Address address) {
    std::ostringstream text;
    text << "invalid device pointer: 0x" << std::hex << address;
    throw std::invalid_argument(text.str());
}

}  // namespace

CachingAllocator::CachingAllocator(device::Device& device, const Settings& settings)
    : device_(device), ordinal_(static_cast<std::uint16_t>(device.ordinal())), events_(device) {
    apply_settings(settings);
    if (settings.max_split_size != Settings::kUnlimited) {
        statistics_.max_split_size = static_cast<std::int64_t>(settings.max_split_size);
    }
    if (settings.per_process_memory_fraction) {
        set_memory_fraction(*settings.per_process_memory_fraction);
    }
}

CachingAllocator::Request CachingAllocator::make_request(std::uint64_t size, StreamHandle stream) {
    const std::uint64_t rounded = round_size(size, settings_.roundup_power2_divisions);
    return {
        .requested_size = size, .size = rounded, .stream = stream, .pool = &choose_pool(rounded)};
}

BlockPool& CachingAllocator::choose_pool(std::uint64_t size) {
    const bool small = size <= kSmallSize;
    if (!scopes_.empty()) [[unlikely]] {
        const std::thread::id thread = std::this_thread::get_id();
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            if (scope->filter == PoolFilter::everything || scope->thread == thread) {
                PrivatePool& pool = *private_pools_.at(scope->pool);
                return small ? pool.small : pool.large;
            }
        }
    }
    return small ? small_ : large_;
}

std::optional<Address> CachingAllocator::try_allocate(std::uint64_t size, StreamHandle stream,
                                                      const CallSite& site) {
    if (size == 0) {
        return Address{0};
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || size >= kLargestRequest) {
        return std::nullopt;
    }
    process_events(stream, site);
    const Request request = make_request(size, stream);
    Block* block = take_free_block(request, true);
    if (block == nullptr) {
        return std::nullopt;
    }
    return hand_out(block, request, site);
}

Address CachingAllocator::allocate(std::uint64_t size, StreamHandle stream, const CallSite& site,
                                   bool already_searched) {
    if (size == 0) {
        return 0;
    }
    std::unique_lock lock(mutex_);
    if (size >= kLargestRequest) {
        throw OutOfMemory({.device = device_.ordinal(), .requested_size = size});
    }
    process_events(stream, site);
    Request request = make_request(size, stream);
    Block* block = take_free_block(request, !already_searched);
    if (block == nullptr && freed_elsewhere(free_memory_callback_, lock)) {
        request = make_request(size, stream);
        block = take_free_block(request, true);
    }
    if (block == nullptr) {
        block = find_or_make_block(request, site);
    }
    if (block == nullptr && !quarantine_.empty()) {
        shrink_quarantine(0, site);
        block = take_free_block(request, true);
        block = block == nullptr ? find_or_make_block_again(request, site) : block;
    }
    if (block == nullptr && freed_elsewhere(last_resort_, lock)) {
        request = make_request(size, stream);
        block = take_free_block(request, true);
        block = block == nullptr ? find_or_make_block_again(request, site) : block;
    }
    if (block == nullptr) {
        throw out_of_memory(request, site);
    }
    return hand_out(block, request, site);
}

// Without counting a second retry of the same request.
Block* CachingAllocator::find_or_make_block_again(const Request& request, const CallSite& site) {
    const std::int64_t retries = statistics_.num_alloc_retries;
    const std::int64_t synchronizations = statistics_.num_sync_all_streams;
    Block* block = find_or_make_block(request, site);
    statistics_.num_alloc_retries = retries;
    statistics_.num_sync_all_streams = synchronizations;
    return block;
}

// By value, because the callback may be replaced while it runs.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
bool CachingAllocator::freed_elsewhere(std::function<bool()> callback,
                                       std::unique_lock<record::ForkSafeMutex>& lock) {
    if (callback == nullptr) {
        return false;
    }
    lock.unlock();
    const bool freed = callback();
    lock.lock();
    return freed;
}

void CachingAllocator::set_last_resort(std::function<bool()> callback) {
    const std::lock_guard lock(mutex_);
    last_resort_ = std::move(callback);
}

void CachingAllocator::set_free_memory_callback(std::function<bool()> callback) {
    const std::lock_guard lock(mutex_);
    free_memory_callback_ = std::move(callback);
}

bool CachingAllocator::try_free(Address address, const CallSite& site) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        return false;
    }
    release_block_to_cache(address, site);
    return true;
}

bool CachingAllocator::try_free_after(Address address, StreamHandle last, const CallSite& site) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || block_of(address)->stream != last) {
        return false;
    }
    release_block_to_cache(address, site);
    return true;
}

void CachingAllocator::free(Address address, const CallSite& site) {
    const std::lock_guard lock(mutex_);
    release_block_to_cache(address, site);
}

Block* CachingAllocator::block_of(Address address) const {
    Block* block = allocated_.find(address);
    if (block == nullptr) {
        throw_invalid_pointer(address);
    }
    return block;
}

void CachingAllocator::release_block_to_cache(Address address, const CallSite& site) {
    Block* block = allocated_.take(address);
    if (block == nullptr) {
        throw_invalid_pointer(address);
    }
    if (block->holds > 0) [[unlikely]] {
        free_later(block);
        return;
    }
    block->allocated = false;
    const bool small = block->pool->is_small;
    statistics_.allocation.decrease(small, 1);
    statistics_.allocated_bytes.decrease(small, block->size);
    if (block->size >= settings_.max_split_size) {
        statistics_.oversize_allocations.decrease(1);
    }
    Uses uses;
    if (tracker_ != nullptr && tracker_->has_uses()) [[unlikely]] {
        uses = take_uses(*block, site);
    }
    block->freed_stack = site.stack;
    const bool is_used = block->stream_uses != nullptr || !uses.empty();
    const bool completes = !is_used && most_quarantined_ == 0;
    if (sink_ != nullptr) {
        record::MemoryEvent event =
            event_of(Action::free_requested, *block, block->size, block->requested_size, site);
        event.completed = completes;
        sink_->push(event);
    }
    if (!is_used && poison_ != nullptr) {
        poison_->fill(*block, site.stack);
    }
    if (completes) {
        free_block(block);
        return;
    }
    if (!is_used) {
        hold_back(block, site);
        return;
    }
    wait_for_uses(block, std::move(uses));
    if (block->stream_uses != nullptr) {
        wait_for_streams(block);
    }
}

record::MemoryEvent CachingAllocator::event_of(Action action, const Block& block,
                                               std::uint64_t size, std::uint64_t requested_size,
                                               const CallSite& site) const {
    const std::uint64_t pool = block.pool->owner == nullptr ? 0 : block.pool->owner->number;
    const bool is_of_block = action == Action::alloc || action == Action::free_requested ||
                             action == Action::free_completed;
    return {.time_ns = record::now_ns(),
            .address = block.address,
            .size = size,
            .requested_size = requested_size,
            .stream = block.stream,
            .stack = site.stack,
            .pool = static_cast<std::uint32_t>(2 * pool + (block.pool->is_small ? 0 : 1)),
            .thread = site.thread,
            .range = site.range,
            .device = ordinal_,
            .action = action,
            .framework = is_of_block ? block.framework : site.framework};
}

void CachingAllocator::empty_cache(const CallSite& site) {
    const std::lock_guard lock(mutex_);
    shrink_quarantine(0, site);
    const std::uint64_t reserved_before = reserved_;
    if (!frees_wait()) {
        release_cached_blocks(site);
    } else {
        release_unused_pools(site);
    }
    Block everything{};
    everything.pool = &small_;
    trace(Action::empty_cache, everything, reserved_before - reserved_, 0, site);
}

void CachingAllocator::set_memory_fraction(double fraction, const CallSite& site) {
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        throw std::invalid_argument("Invalid fraction value: " + std::to_string(fraction) +
                                    ". Allowed range: 0 to 1.");
    }
    std::optional<std::uint64_t> limit;
    if (fraction < 1.0) {
        limit = static_cast<std::uint64_t>(fraction * static_cast<double>(device_.total_memory()));
    }
    limit_memory(limit, site);
}

void CachingAllocator::set_memory_limit(std::uint64_t bytes, const CallSite& site) {
    limit_memory(bytes < device_.total_memory() ? std::optional(bytes) : std::nullopt, site);
}

void CachingAllocator::limit_memory(std::optional<std::uint64_t> bytes, const CallSite& site) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    if (sink_ != nullptr) {
        sink_->push(limit_event(site));
    }
}

record::MemoryEvent CachingAllocator::limit_event(const CallSite& site) {
    Block everything{};
    everything.pool = &small_;
    return event_of(Action::memory_limit, everything, limit_.value_or(device_.total_memory()), 0,
                    site);
}

double CachingAllocator::memory_fraction() const {
    const std::lock_guard lock(mutex_);
    return limit_ ? static_cast<double>(*limit_) / static_cast<double>(device_.total_memory())
                  : 1.0;
}

void CachingAllocator::apply_settings(const Settings& settings) {
    const std::lock_guard lock(mutex_);
    settings_ = settings;
    expandable_ = settings.expandable_segments && device_.has_virtual_memory();
}

Settings CachingAllocator::settings() const {
    const std::lock_guard lock(mutex_);
    return settings_;
}

void CachingAllocator::identify_stream(StreamHandle stream, std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    events_.identify_stream(stream, id);
}

Statistics CachingAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

void CachingAllocator::reset_peak_stats() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_peak();
}

void CachingAllocator::reset_accumulated_stats() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_accumulated();
}

void CachingAllocator::set_event_sink(record::MemoryEventSink* sink) {
    const std::lock_guard lock(mutex_);
    if (relay_ != nullptr) {
        relay_->set_next(sink);
    } else {
        sink_ = sink;
    }
}

void CachingAllocator::set_relay(std::unique_ptr<record::MemoryEventRelay> relay) {
    const std::lock_guard lock(mutex_);
    relay->set_next(sink_);
    relay_ = std::move(relay);
    sink_ = relay_.get();
}

}  // namespace gpuviz::allocator
