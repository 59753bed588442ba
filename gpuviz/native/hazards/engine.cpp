#include "hazards/engine.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpuviz::hazards {

namespace {

// Up to here, a pair of accesses to one block is looked for by comparing all.
constexpr std::size_t few_accesses = 16;

template <typename Table>
[[noreturn]] void throw_unknown(const Table& what, std::uint64_t id) {
    throw std::invalid_argument(std::string(what) + " " + std::to_string(id) + " does not exist");
}

bool names_a_block_twice(std::span<const Access> accesses) {
    if (accesses.size() > few_accesses) return true;
    for (std::size_t each = 1; each < accesses.size(); ++each) {
        for (std::size_t other = 0; other < each; ++other) {
            if (accesses[each].block == accesses[other].block) return true;
        }
    }
    return false;
}

bool is_write(Mode mode) { return mode == Mode::write || mode == Mode::atomic; }

Tier tier_of(const Access& access) {
    return access.is_exact && access.mode != Mode::unknown ? Tier::certain : Tier::probable;
}

}  // namespace

Engine::Engine(Options options) : options_(options), order_(options.strict_threads) {}

std::vector<Hazard> Engine::take() {
    for (Doubt& each : doubts_) hazards_.push_back(std::move(each.hazard));
    doubts_.clear();
    return std::exchange(hazards_, {});
}

Engine::Block* Engine::find(BlockId id) {
    const auto slot = static_cast<std::uint32_t>(id) - 1;
    if (slot >= blocks_.size() || blocks_[slot].generation != id >> 32) return nullptr;
    return &blocks_[slot];
}

bool Engine::is_live(BlockId id) const {
    const Block* block = const_cast<Engine*>(this)->find(id);
    return block && block->is_live;
}

Engine::Block& Engine::live_block(BlockId id) {
    if (!is_live(id)) throw_unknown("live block", id);
    return *find(id);
}

Engine::Event& Engine::event_of(EventId id) {
    if (id >= events_.size() || !events_[id].exists) throw_unknown("event", id);
    return events_[id];
}

Engine::Graph& Engine::graph_of(GraphId id) {
    if (id >= graphs_.size()) throw_unknown("graph", id);
    return graphs_[id];
}

void Engine::check_stream(Slot stream) const {
    if (!order_.has_stream(stream)) throw_unknown("stream", stream);
}

Capture* Engine::capture_of(Slot stream) {
    if (captures_.empty()) return nullptr;
    const auto found = captures_.find(stream);
    return found == captures_.end() ? nullptr : found->second.get();
}

Slot Engine::create_stream(StreamKind kind, Device device) {
    return order_.create_stream(kind, device);
}

void Engine::destroy_stream(Slot stream) {
    check_stream(stream);
    order_.destroy_stream(stream);
}

EventId Engine::create_event() {
    if (unused_events_.empty()) {
        events_.emplace_back();
        return static_cast<EventId>(events_.size() - 1);
    }
    const EventId id = unused_events_.back();
    unused_events_.pop_back();
    events_[id] = {};
    return id;
}

void Engine::destroy_event(EventId event) {
    event_of(event) = {.exists = false, .clock = {}, .capture = {}};
    unused_events_.push_back(event);
}

// ---- accesses

const std::vector<Access>& Engine::placed(std::span<const Access> accesses) {
    placed_.clear();
    for (Access access : accesses) {
        const Block* block = find(access.block);
        if (!block) throw_unknown("block", access.block);
        if (!access.is_exact && access.stop == 0) access.stop = block->of.bytes;
        if (access.start > access.stop || access.stop > block->of.bytes) {
            throw std::invalid_argument("an access of bytes " + std::to_string(access.start) +
                                        " to " + std::to_string(access.stop) + " of a block of " +
                                        std::to_string(block->of.bytes) + " bytes");
        }
        if (access.start == access.stop) continue;
        access.start += block->of.address;
        access.stop += block->of.address;
        access.pointer = access.start;
        placed_.push_back(access);
    }
    if (names_a_block_twice(placed_)) placed_ = strongest(std::move(placed_));
    return placed_;
}

// Whether the action runs after a value that nobody has written yet.
bool Engine::waits_early(Moment moment) const {
    return std::any_of(values_.begin(), values_.end(), [&](const auto& each) {
        const std::vector<Moment>& waits = each.second.early_waits;
        return std::any_of(waits.begin(), waits.end(), [&](Moment wait) {
            return wait.slot == moment.slot && wait.index < moment.index;
        });
    });
}

template <typename IsAfter>
void Engine::check_past(HazardsOfOperation& found, const Access& access, std::uint64_t base,
                        const Extent& extent, IsAfter&& is_after) {
    History::for_each_past(
        extent, access.start, access.stop,
        [&](const PastAccess& past, std::uint64_t start, std::uint64_t stop) {
            if (is_after(past.moment()) || !conflict(past, access)) return;
            if (!options_.unknown_may_write && !is_write(past.mode) && !is_write(access.mode)) {
                return;
            }
            const bool is_same = past.block == access.block;
            const bool is_reuse = !is_same && (is_live(past.block) || is_live(access.block));
            const bool is_certain = past.is_exact && past.mode != Mode::unknown;
            const Kind kind = is_reuse ? Kind::reuse : kind_of(past.mode, access.mode);
            const Tier tier = is_certain ? tier_of(access) : Tier::probable;
            const BlockId other = is_same ? 0 : past.block;
            if (found.moment().index > 0 && waits_early(past.moment())) {
                doubts_.push_back({past.moment(),
                                   found.moment(),
                                   {kind,
                                    tier,
                                    past.operation,
                                    found.second(),
                                    access.block,
                                    other,
                                    {{start - base, stop - base}}}});
                return;
            }
            found.add(kind, tier, past.operation, access.block, other, start - base, stop - base);
        });
}

// Stream-ordered memory exists from its allocation to its free, in the order of their streams.
template <typename IsAfter>
void Engine::check_lifetime(HazardsOfOperation& found, const Access& access, const Block& block,
                            IsAfter&& is_after) {
    if (block.is_graph_memory) return;
    const std::uint64_t start = access.start - block.of.address;
    const std::uint64_t stop = access.stop - block.of.address;
    if (block.of.allocator == Allocator::stream_ordered && !is_after(block.allocated)) {
        found.add(Kind::use_before_alloc, Tier::certain, block.of.operation, access.block, 0, start,
                  stop);
    }
    if (block.freed_async) {
        found.add(Kind::use_after_free, Tier::certain, block.freed_by, access.block, 0, start,
                  stop);
    }
}

// Loads the past of all accesses at once; waiting for each in turn would take most of the time.
void Engine::prefetch(const std::vector<Access>& accesses) {
    prefetched_.clear();
    for (const Access& access : accesses) {
        const Extent* extent = find(access.block)->extent;
        if (extent) prefetched_.push_back(extent);
        __builtin_prefetch(extent);
    }
    for (const Extent* each : prefetched_) __builtin_prefetch(each->pieces.data());
    for (const Extent* each : prefetched_) {
        if (!each->pieces.empty()) __builtin_prefetch(each->pieces[0].past.data());
    }
}

template <typename IsAfter>
void Engine::check(HazardsOfOperation& found, const std::vector<Access>& accesses,
                   IsAfter&& is_after) {
    for (const Access& access : accesses) {
        const Block& block = *find(access.block);
        check_lifetime(found, access, block, is_after);
        if (block.is_live) {
            check_past(found, access, block.of.address, *block.extent, is_after);
            continue;
        }
        history_.for_each_extent(access.start, access.stop, false, [&](const Extent& extent) {
            check_past(found, access, block.of.address, extent, is_after);
        });
    }
}

// A graph accesses the same addresses at each launch, whoever owns them by then.
void Engine::check_owners(HazardsOfOperation& found, const Access& access) {
    const Block& block = *find(access.block);
    if (block.is_live || block.is_graph_memory) return;
    if (block.of.allocator == Allocator::private_pool) return;
    const std::uint64_t base = block.of.address;
    const auto add_vacant = [&](std::uint64_t start, std::uint64_t stop) {
        if (block.freed_async || start >= stop) return;
        found.add(Kind::use_after_free, Tier::latent, block.freed_by, access.block, 0, start - base,
                  stop - base);
    };
    std::uint64_t reached = access.start;
    history_.for_each_extent(access.start, access.stop, false, [&](const Extent& extent) {
        const Block* owner = find(extent.owner);
        if (!owner) return;
        const std::uint64_t start = std::max(extent.start, access.start);
        const std::uint64_t stop = std::min(extent.stop, access.stop);
        add_vacant(reached, start);
        reached = stop;
        const bool is_certain = owner->of.allocator == Allocator::stream_ordered;
        found.add(Kind::reuse, is_certain ? Tier::certain : tier_of(access), owner->of.operation,
                  access.block, extent.owner, start - base, stop - base);
    });
    add_vacant(reached, access.stop);
}

void Engine::remember(OperationId operation, Moment moment, const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
        const PastAccess past(operation, moment, access);
        const Block& block = *find(access.block);
        if (block.is_live) {
            History::add(*block.extent, access.start, access.stop, past);
            continue;
        }
        history_.for_each_extent(access.start, access.stop, true, [&](Extent& extent) {
            History::add(extent, std::max(access.start, extent.start),
                         std::min(access.stop, extent.stop), past);
        });
    }
}

void Engine::add_node(OperationId operation, Capture& capture, Slot stream,
                      const std::vector<Access>& accesses, bool programmatic) {
    const Slot slot = capture.join(stream);
    const Moment moment = capture.order.act(slot, 0, programmatic);
    const Start start = capture.order.start_of_last(slot);
    HazardsOfOperation found(operation);
    for (const Access& access : accesses) {
        const std::uint64_t base = find(access.block)->of.address;
        capture.history.for_each_extent(
            access.start, access.stop, false, [&](const Extent& extent) {
                check_past(found, access, base, extent,
                           [&](Moment past) { return start.is_after(past); });
            });
    }
    for (const Access& access : accesses) {
        const PastAccess past(operation, moment, access);
        capture.history.for_each_extent(access.start, access.stop, true, [&](Extent& extent) {
            History::add(extent, std::max(access.start, extent.start),
                         std::min(access.stop, extent.stop), past);
        });
        capture.accesses.push_back(access);
        find(access.block)->is_in_graph = true;
    }
    found.append_to(hazards_);
}

void Engine::enqueue(OperationId operation, ThreadId thread, Slot stream,
                     std::span<const Access> accesses, bool programmatic) {
    check_stream(stream);
    const std::vector<Access>& placed_accesses = placed(accesses);
    if (Capture* capture = capture_of(stream)) {
        add_node(operation, *capture, stream, placed_accesses, programmatic);
        return;
    }
    prefetch(placed_accesses);
    const Moment moment = order_.act(stream, thread, programmatic);
    const Start start = order_.start_of_last(stream);
    HazardsOfOperation found(operation, moment);
    check(found, placed_accesses, [&](Moment past) { return start.is_after(past); });
    remember(operation, moment, placed_accesses);
    found.append_to(hazards_);
}

void Engine::launch(OperationId operation, ThreadId thread, Slot stream,
                    std::span<const Access> accesses, bool programmatic) {
    enqueue(operation, thread, stream, accesses, programmatic);
}

void Engine::copy(OperationId operation, ThreadId thread, Slot stream, Copy copy,
                  std::span<const Access> accesses) {
    check_stream(stream);
    const bool is_upload = copy.kind == CopyKind::host_to_device;
    if (copy.is_synchronous && is_upload && copy.is_pageable) order_.synchronize(thread, stream);
    const bool is_captured = capture_of(stream) != nullptr;
    std::optional<Slot> peer;
    if (copy.peer && order_.is_legacy(stream) && !is_captured) {
        peer = order_.legacy_of(*copy.peer);
        order_.act(*peer, thread);
        order_.follow(stream, order_.tail(*peer));
    }
    enqueue(operation, thread, stream, accesses);
    if (peer) order_.follow(*peer, order_.tail(stream));
    const bool blocks = options_.pageable_download_blocks && copy.is_pageable;
    const bool is_complete =
        copy.kind == CopyKind::host_to_host ||
        (copy.kind == CopyKind::device_to_host && (copy.is_synchronous || blocks)) ||
        (is_upload && copy.is_synchronous && !copy.is_pageable);
    if (is_complete && !is_captured) order_.synchronize(thread, stream);
}

void Engine::memset(OperationId operation, ThreadId thread, Slot stream, bool is_synchronous,
                    std::span<const Access> accesses) {
    enqueue(operation, thread, stream, accesses);
    const bool is_pinned = std::any_of(accesses.begin(), accesses.end(), [&](const Access& each) {
        return find(each.block)->of.memory == Memory::pinned;
    });
    if (is_synchronous && is_pinned) order_.synchronize(thread, stream);
}

void Engine::host_access(OperationId operation, ThreadId thread, std::span<const Access> accesses) {
    const std::vector<Access>& placed_accesses = placed(accesses);
    HazardsOfOperation found(operation);
    const Clock& known = order_.known_to(thread);
    check(found, placed_accesses, [&](Moment past) { return known.has(past); });
    found.append_to(hazards_);
    // What all threads know is ordered before everything to come.
    if (options_.strict_threads) {
        remember(operation, order_.access_by(thread), placed_accesses);
    }
}

// ---- order

void Engine::record_event(ThreadId thread, EventId id, Slot stream) {
    check_stream(stream);
    Event& event = event_of(id);
    if (Capture* capture = capture_of(stream)) {
        const Slot slot = capture->join(stream);
        capture->order.act(slot, 0);
        event.clock = capture->order.tail(slot);
        event.capture = captures_[stream];
        return;
    }
    order_.act(stream, thread);
    event.is_recorded = true;
    event.clock = order_.tail(stream);
    event.capture.reset();
}

void Engine::wait_event(ThreadId thread, Slot stream, EventId id) {
    check_stream(stream);
    const Event& event = event_of(id);
    const Capture* capture = capture_of(stream);
    if (event.capture) {
        if (!event.capture->is_open || (capture && capture != event.capture.get())) return;
        captures_[stream] = event.capture;
        const Slot slot = event.capture->join(stream);
        event.capture->order.act(slot, 0);
        event.capture->order.follow(slot, event.clock);
        return;
    }
    if (capture || (!event.is_recorded && order_.is_legacy(stream))) return;
    order_.act(stream, thread);
    if (event.is_recorded) order_.follow(stream, event.clock);
}

void Engine::synchronize_event(ThreadId thread, EventId id) {
    const Event& event = event_of(id);
    if (event.is_recorded && !event.capture) order_.learn(thread, event.clock);
}

void Engine::synchronize_stream(ThreadId thread, Slot stream) {
    check_stream(stream);
    order_.synchronize(thread, stream);
}

void Engine::synchronize_device(ThreadId thread, Device device) {
    order_.synchronize_device(thread, device);
}

void Engine::synchronize_all(ThreadId thread) { order_.synchronize_all(thread); }

void Engine::wait_for_unknown(ThreadId thread, Slot stream) {
    check_stream(stream);
    order_.act(stream, thread);
    order_.follow_all(stream);
}

void Engine::write_value(ThreadId thread, Slot stream, std::uint64_t address) {
    check_stream(stream);
    if (Capture* capture = capture_of(stream)) {
        capture->order.act(capture->join(stream), 0);
        return;
    }
    order_.act(stream, thread);
    Value& value = values_[address];
    value.is_written = true;
    value.clock.join(order_.tail(stream));
    for (const Moment wait : value.early_waits) {
        order_.follow(wait.slot, value.clock);
        std::erase_if(doubts_, [&](const Doubt& doubt) {
            return doubt.first.slot == wait.slot && doubt.first.index > wait.index &&
                   value.clock.has(doubt.second);
        });
    }
    value.early_waits.clear();
}

void Engine::wait_value(ThreadId thread, Slot stream, std::uint64_t address) {
    check_stream(stream);
    if (Capture* capture = capture_of(stream)) {
        capture->order.act(capture->join(stream), 0);
        return;
    }
    const Moment wait = order_.act(stream, thread);
    Value& value = values_[address];
    if (value.is_written) {
        order_.follow(stream, value.clock);
        return;
    }
    order_.follow_all(stream);
    const bool is_known = std::any_of(value.early_waits.begin(), value.early_waits.end(),
                                      [&](Moment earlier) { return earlier.slot == stream; });
    if (!is_known) value.early_waits.push_back(wait);
}

// ---- allocators

BlockId Engine::allocate(const Allocation& allocation) {
    if (allocation.bytes == 0) throw std::invalid_argument("a block has no bytes");
    if (allocation.address > last_address || allocation.bytes > last_address) {
        throw std::invalid_argument("a block is not in the address space");
    }
    if (allocation.allocator != Allocator::cuda) check_stream(allocation.stream);
    if (history_.extent_count() >= forget_at_) forget_settled();
    if (unused_blocks_.empty()) {
        blocks_.emplace_back();
        unused_blocks_.push_back(static_cast<std::uint32_t>(blocks_.size() - 1));
    }
    const std::uint32_t slot = unused_blocks_.back();
    const BlockId id = (BlockId(blocks_[slot].generation) << 32) | (slot + 1);
    Release release;
    Extent& extent = history_.occupy(allocation.address, allocation.address + allocation.bytes, id,
                                     [&](const Release& each) {
                                         release.recorded.join(each.recorded);
                                         release.freed_async.join(each.freed_async);
                                     });
    unused_blocks_.pop_back();

    if (allocation.allocator != Allocator::cuda) order_.hold(allocation.stream);

    Block& block = blocks_[slot];
    block = {.generation = block.generation,
             .is_live = true,
             .of = allocation,
             .allocated = {},
             .extent = &extent,
             .recorded = {}};
    if (allocation.allocator != Allocator::stream_ordered) {
        order_.learn(allocation.thread, release.recorded);
        return id;
    }
    if (Capture* capture = capture_of(allocation.stream)) {
        capture->order.act(capture->join(allocation.stream), 0);
        block.is_graph_memory = true;
        return id;
    }
    block.allocated = order_.act(allocation.stream, allocation.thread);
    order_.follow(allocation.stream, release.freed_async);
    return id;
}

void Engine::record_stream(BlockId id, Slot stream) {
    check_stream(stream);
    std::vector<Slot>& recorded = live_block(id).recorded;
    const bool is_known = std::find(recorded.begin(), recorded.end(), stream) != recorded.end();
    if (is_known) return;
    recorded.push_back(stream);
    order_.hold(stream);
}

template <typename IsAfter>
void Engine::check_free(HazardsOfOperation& found, Tier tier, BlockId id, IsAfter&& is_after) {
    const Block& block = *find(id);
    const std::uint64_t base = block.of.address;
    History::for_each_past(*block.extent, base, base + block.of.bytes,
                           [&](const PastAccess& past, std::uint64_t start, std::uint64_t stop) {
                               if (past.block != id || is_after(past.moment())) return;
                               found.add(Kind::use_after_free, tier, past.operation, id, 0,
                                         start - base, stop - base);
                           });
}

void Engine::free(OperationId operation, ThreadId thread, BlockId id) {
    Block& block = live_block(id);
    Release release;
    for (const Slot stream : block.recorded) {
        if (order_.has_stream(stream) && !capture_of(stream)) order_.act(stream, thread);
        release.recorded.join(order_.tail(stream));
    }
    const Clock start = block.of.memory == Memory::pinned
                            ? order_.known_to(thread)
                            : order_.next_start(block.of.stream, thread);
    HazardsOfOperation found(operation);
    check_free(found, Tier::latent, id,
               [&](Moment past) { return start.has(past) || release.recorded.has(past); });
    found.append_to(hazards_);
    end(block, operation, std::move(release));
}

void Engine::free_async(OperationId operation, ThreadId thread, BlockId id, Slot stream) {
    check_stream(stream);
    Block& block = live_block(id);
    if (Capture* capture = capture_of(stream)) {
        capture->order.act(capture->join(stream), 0);
        block.is_graph_memory = true;
        end(block, operation, {});
        return;
    }
    order_.act(stream, thread);
    const Start start = order_.start_of_last(stream);
    const auto is_after = [&](Moment past) { return start.is_after(past); };
    HazardsOfOperation found(operation);
    const bool is_ordered = block.of.allocator != Allocator::stream_ordered ||
                            block.is_graph_memory || is_after(block.allocated);
    if (!is_ordered) {
        found.add(Kind::use_before_alloc, Tier::certain, block.of.operation, id, 0, 0,
                  block.of.bytes);
    }
    check_free(found, Tier::certain, id, is_after);
    found.append_to(hazards_);
    block.freed_async = true;
    end(block, operation, {.recorded = {}, .freed_async = order_.tail(stream)});
}

void Engine::cuda_free(ThreadId thread, BlockId id) {
    Block& block = live_block(id);
    if (options_.cuda_free_synchronizes) order_.synchronize_all(thread);
    const std::uint64_t start = block.of.address, stop = start + block.of.bytes;
    end(block, 0, {});
    if (options_.cuda_free_synchronizes && !options_.strict_threads) {
        history_.forget_vacant(start, stop);
    }
}

void Engine::end(Block& block, OperationId operation, Release release) {
    block.is_live = false;
    block.freed_by = operation;
    for (const Slot stream : block.recorded) order_.drop(stream);
    block.recorded.clear();
    if (block.of.allocator != Allocator::cuda) order_.drop(block.of.stream);
    const bool is_awaited = !release.recorded.is_empty() || !release.freed_async.is_empty();
    history_.vacate(*block.extent,
                    is_awaited ? std::make_shared<const Release>(std::move(release)) : nullptr);
    block.extent = nullptr;
}

void Engine::release(BlockId id) {
    Block* block = find(id);
    if (!block || block->is_live) throw_unknown("freed block", id);
    block->is_released = true;
    reuse_slot_of(id);
}

void Engine::reuse_slot_of(BlockId id) {
    Block& block = *find(id);
    if (block.is_live || !block.is_released || block.is_in_graph) return;
    ++block.generation;
    unused_blocks_.push_back(static_cast<std::uint32_t>(id) - 1);
}

void Engine::forget_settled() {
    struct IsSettled {
        const Order& order;
        bool operator()(const PastAccess& past) const { return order.is_settled(past.moment()); }
        bool operator()(const Release& release) const {
            return order.is_settled(release.recorded) && order.is_settled(release.freed_async);
        }
    };
    history_.forget_settled(IsSettled{order_});
    forget_at_ = std::max<std::size_t>(1024, 2 * history_.extent_count());
}

// ---- graphs

void Engine::begin_capture(Slot stream) {
    check_stream(stream);
    if (capture_of(stream)) {
        throw std::invalid_argument("stream " + std::to_string(stream) + " captures already");
    }
    captures_[stream] = std::make_shared<Capture>(stream);
}

GraphId Engine::end_capture(Slot stream) {
    const auto found = captures_.find(stream);
    if (found == captures_.end() || found->second->origin != stream) {
        throw std::invalid_argument("no capture began on stream " + std::to_string(stream));
    }
    const std::shared_ptr<Capture> capture = found->second;
    capture->is_open = false;
    std::erase_if(captures_, [&](const auto& each) { return each.second == capture; });
    return add_graph(std::move(capture->accesses));
}

GraphId Engine::create_graph(std::span<const Access> accesses) {
    return add_graph(placed(accesses));
}

GraphId Engine::instantiate(GraphId graph) { return add_graph(graph_of(graph).accesses); }

GraphId Engine::add_graph(std::vector<Access> accesses) {
    graphs_.push_back({strongest(std::move(accesses)), {}});
    for (const Access& access : graphs_.back().accesses) find(access.block)->is_in_graph = true;
    return static_cast<GraphId>(graphs_.size() - 1);
}

void Engine::launch_graph(OperationId operation, ThreadId thread, GraphId id, Slot stream) {
    check_stream(stream);
    Graph& graph = graph_of(id);
    if (Capture* capture = capture_of(stream)) {
        add_node(operation, *capture, stream, graph.accesses, false);
        return;
    }
    const Moment moment = order_.act(stream, thread);
    order_.follow(stream, graph.last_launch);
    const Start start = order_.start_of_last(stream);
    HazardsOfOperation found(operation, moment);
    check(found, graph.accesses, [&](Moment past) { return start.is_after(past); });
    for (const Access& access : graph.accesses) check_owners(found, access);
    found.append_to(hazards_);
    remember(operation, moment, graph.accesses);
    graph.last_launch = order_.tail(stream);
}

}  // namespace gpuviz::hazards
