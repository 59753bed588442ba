#include "hazards/engine.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "hazards/unknown_id.hpp"

namespace gpuviz::hazards {

Engine::Engine(Options options)
    : options_(options),
      order_(options.strict_threads),
      checker_(options.unknown_may_write, blocks_, history_, values_) {}

std::vector<Hazard> Engine::take() {
    values_.take_doubts(hazards_);
    return std::exchange(hazards_, {});
}

Engine::Graph& Engine::graph_of(GraphId id) {
    if (id >= graphs_.size()) throw_unknown("graph", id);
    return graphs_[id];
}

void Engine::check_stream(Slot stream) const {
    if (!order_.has_stream(stream)) throw_unknown("stream", stream);
}

void Engine::destroy_stream(Slot stream) {
    check_stream(stream);
    order_.destroy_stream(stream);
}

// ---- operations

void Engine::add_node(OperationId operation, Capture& capture, Slot stream,
                      const std::vector<Access>& accesses, bool programmatic) {
    const Slot slot = capture.join(stream);
    const Moment moment = capture.order.act(slot, 0, programmatic);
    HazardsOfOperation found(operation);
    const Start start = capture.order.start_of_last(slot);
    checker_.check_node(found, accesses, start, capture.history);
    AccessChecker::remember_node(operation, moment, accesses, capture.history);
    for (const Access& access : accesses) {
        capture.accesses.push_back(access);
        blocks_.find(access.block)->is_in_graph = true;
    }
    found.append_to(hazards_);
}

void Engine::enqueue(OperationId operation, ThreadId thread, Slot stream,
                     std::span<const Access> accesses, bool programmatic) {
    check_stream(stream);
    const std::vector<Access>& placed_accesses = blocks_.placed(accesses);
    if (Capture* capture = captures_.of(stream)) {
        add_node(operation, *capture, stream, placed_accesses, programmatic);
        return;
    }
    checker_.prefetch(placed_accesses);
    const Moment moment = order_.act(stream, thread, programmatic);
    const Start start = order_.start_of_last(stream);
    HazardsOfOperation found(operation, moment);
    checker_.check(found, placed_accesses, start);
    checker_.remember(operation, moment, placed_accesses);
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
    const bool is_captured = captures_.of(stream) != nullptr;
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
        return blocks_.find(each.block)->of.memory == Memory::pinned;
    });
    if (is_synchronous && is_pinned) order_.synchronize(thread, stream);
}

void Engine::host_access(OperationId operation, ThreadId thread, std::span<const Access> accesses) {
    const std::vector<Access>& placed_accesses = blocks_.placed(accesses);
    HazardsOfOperation found(operation);
    checker_.check(found, placed_accesses, Start(order_.known_to(thread)));
    found.append_to(hazards_);
    // What all threads know is ordered before everything to come.
    if (options_.strict_threads) {
        checker_.remember(operation, order_.access_by(thread), placed_accesses);
    }
}

// ---- order

void Engine::record_event(ThreadId thread, EventId id, Slot stream) {
    check_stream(stream);
    Event& event = events_.of(id);
    if (Capture* capture = captures_.of(stream)) {
        const Slot slot = capture->act(stream);
        event.clock = capture->order.tail(slot);
        event.capture = captures_.shared(stream);
        return;
    }
    order_.act(stream, thread);
    event.is_recorded = true;
    event.clock = order_.tail(stream);
    event.capture.reset();
}

void Engine::wait_event(ThreadId thread, Slot stream, EventId id) {
    check_stream(stream);
    const Event& event = events_.of(id);
    const Capture* capture = captures_.of(stream);
    if (event.capture) {
        if (!event.capture->is_open || (capture && capture != event.capture.get())) return;
        captures_.join(stream, event.capture);
        const Slot slot = event.capture->act(stream);
        event.capture->order.follow(slot, event.clock);
        return;
    }
    if (capture || (!event.is_recorded && order_.is_legacy(stream))) return;
    order_.act(stream, thread);
    if (event.is_recorded) order_.follow(stream, event.clock);
}

void Engine::synchronize_event(ThreadId thread, EventId id) {
    const Event& event = events_.of(id);
    if (event.is_recorded && !event.capture) order_.learn(thread, event.clock);
}

void Engine::synchronize_stream(ThreadId thread, Slot stream) {
    check_stream(stream);
    order_.synchronize(thread, stream);
}

void Engine::synchronize_device(ThreadId thread, Device device) {
    order_.synchronize_device(thread, device);
}

void Engine::wait_for_unknown(ThreadId thread, Slot stream) {
    check_stream(stream);
    order_.act(stream, thread);
    order_.follow_all(stream);
}

void Engine::write_value(ThreadId thread, Slot stream, std::uint64_t address) {
    check_stream(stream);
    if (Capture* capture = captures_.of(stream)) {
        capture->act(stream);
        return;
    }
    order_.act(stream, thread);
    values_.write(order_, stream, address);
}

void Engine::wait_value(ThreadId thread, Slot stream, std::uint64_t address) {
    check_stream(stream);
    if (Capture* capture = captures_.of(stream)) {
        capture->act(stream);
        return;
    }
    values_.wait(order_, order_.act(stream, thread), address);
}

// ---- allocators

BlockId Engine::allocate(const Allocation& allocation) {
    if (allocation.bytes == 0) throw std::invalid_argument("a block has no bytes");
    if (allocation.address > last_address || allocation.bytes > last_address) {
        throw std::invalid_argument("a block is not in the address space");
    }
    if (allocation.allocator != Allocator::cuda) check_stream(allocation.stream);
    if (history_.extent_count() >= forget_at_) forget_settled();
    const BlockId id = blocks_.next();
    Release release;
    Extent& extent = history_.occupy(allocation.address, allocation.address + allocation.bytes, id,
                                     [&](const Release& each) {
                                         release.recorded.join(each.recorded);
                                         release.freed_async.join(each.freed_async);
                                     });
    Block& block = blocks_.add(allocation, extent);
    if (allocation.allocator != Allocator::cuda) order_.hold(allocation.stream);
    if (allocation.allocator != Allocator::stream_ordered) {
        order_.learn(allocation.thread, release.recorded);
        return id;
    }
    if (Capture* capture = captures_.of(allocation.stream)) {
        capture->act(allocation.stream);
        block.is_graph_memory = true;
        return id;
    }
    block.allocated = order_.act(allocation.stream, allocation.thread);
    order_.follow(allocation.stream, release.freed_async);
    return id;
}

void Engine::record_stream(BlockId id, Slot stream) {
    check_stream(stream);
    std::vector<Slot>& recorded = blocks_.live(id).recorded;
    const bool is_known = std::find(recorded.begin(), recorded.end(), stream) != recorded.end();
    if (is_known) return;
    recorded.push_back(stream);
    order_.hold(stream);
}

void Engine::free(OperationId operation, ThreadId thread, BlockId id) {
    Block& block = blocks_.live(id);
    Release release;
    for (const Slot stream : block.recorded) {
        if (order_.has_stream(stream) && !captures_.of(stream)) order_.act(stream, thread);
        release.recorded.join(order_.tail(stream));
    }
    Clock start = block.of.memory == Memory::pinned ? order_.known_to(thread)
                                                    : order_.next_start(block.of.stream, thread);
    start.join(release.recorded);
    HazardsOfOperation found(operation);
    checker_.check_free(found, Tier::latent, id, Start(start));
    found.append_to(hazards_);
    end(block, operation, std::move(release));
}

void Engine::free_async(OperationId operation, ThreadId thread, BlockId id, Slot stream) {
    check_stream(stream);
    Block& block = blocks_.live(id);
    if (Capture* capture = captures_.of(stream)) {
        capture->act(stream);
        block.is_graph_memory = true;
        end(block, operation, {});
        return;
    }
    order_.act(stream, thread);
    const Start start = order_.start_of_last(stream);
    HazardsOfOperation found(operation);
    const bool is_ordered = block.of.allocator != Allocator::stream_ordered ||
                            block.is_graph_memory || start.is_after(block.allocated);
    if (!is_ordered) {
        found.add(Kind::use_before_alloc, Tier::certain, block.of.operation, id, 0, 0,
                  block.of.bytes);
    }
    checker_.check_free(found, Tier::certain, id, start);
    found.append_to(hazards_);
    block.freed_async = true;
    end(block, operation, {.recorded = {}, .freed_async = order_.tail(stream)});
}

void Engine::cuda_free(ThreadId thread, BlockId id) {
    Block& block = blocks_.live(id);
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
    captures_.begin(stream);
}

GraphId Engine::end_capture(Slot stream) { return add_graph(captures_.end(stream)); }

GraphId Engine::create_graph(std::span<const Access> accesses) {
    return add_graph(blocks_.placed(accesses));
}

GraphId Engine::instantiate(GraphId graph) { return add_graph(graph_of(graph).accesses); }

GraphId Engine::add_graph(std::vector<Access> accesses) {
    graphs_.push_back({strongest(std::move(accesses)), {}});
    for (const Access& access : graphs_.back().accesses) {
        blocks_.find(access.block)->is_in_graph = true;
    }
    return static_cast<GraphId>(graphs_.size() - 1);
}

void Engine::launch_graph(OperationId operation, ThreadId thread, GraphId id, Slot stream) {
    check_stream(stream);
    Graph& graph = graph_of(id);
    if (Capture* capture = captures_.of(stream)) {
        add_node(operation, *capture, stream, graph.accesses, false);
        return;
    }
    const Moment moment = order_.act(stream, thread);
    order_.follow(stream, graph.last_launch);
    const Start start = order_.start_of_last(stream);
    HazardsOfOperation found(operation, moment);
    checker_.check(found, graph.accesses, start);
    checker_.check_owners(found, graph.accesses);
    found.append_to(hazards_);
    checker_.remember(operation, moment, graph.accesses);
    graph.last_launch = order_.tail(stream);
}

}  // namespace gpuviz::hazards
