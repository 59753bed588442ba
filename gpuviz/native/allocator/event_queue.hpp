#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/slot_table.hpp"
#include "device/device.hpp"

namespace gpuviz::allocator {

// The events that freed blocks wait for, in one FIFO queue per stream.
class EventQueue {
  public:
    explicit EventQueue(device::Device& device) : device_(device) {}

    [[nodiscard]] bool empty() const noexcept { return queues_.empty(); }

    // Sets the id by which torch hashes a stream; the default is its handle.
    void identify_stream(device::StreamHandle stream, std::uint64_t id);

    // The streams in torch's iteration order of a set into which they were inserted in this order.
    [[nodiscard]] std::vector<device::StreamHandle> in_slot_order(
        const std::vector<device::StreamHandle>& streams) const;

    // Records an event on `stream` for which `block` waits.
    void record(Block* block, device::StreamHandle stream);

    // Removes completed events from the front of each queue, and calls `complete(block)` for each
    // block that no longer waits.
    template <typename Complete>
    void reap(Complete complete) {
        visit([&](std::deque<Pending>& queue) {
            while (!queue.empty() && device_.is_complete(queue.front().event)) {
                pop(queue, queue.begin(), complete);
            }
        });
    }

    // Waits for the events of the blocks that `belongs` accepts.
    template <typename Belongs, typename Complete>
    void synchronize(Belongs belongs, Complete complete) {
        visit([&](std::deque<Pending>& queue) {
            for (std::size_t at = 0; at < queue.size();) {
                if (!belongs(queue[at].block)) {
                    ++at;
                    continue;
                }
                device_.synchronize(queue[at].event);
                pop(queue, queue.begin() + static_cast<std::ptrdiff_t>(at), complete);
            }
        });
    }

    // Discards every event; for the destructor of the allocator.
    void discard() {
        visit([&](std::deque<Pending>& queue) {
            for (const Pending& pending : queue) {
                device_.release(pending.event);
            }
            queue.clear();
        });
    }

  private:
    struct Pending {
        device::EventHandle event;
        Block* block;
    };

    template <typename Visit>
    void visit(Visit visit_queue) {
        for (std::size_t slot = 0; slot < queues_.slot_count();) {
            if (!queues_.has(slot)) {
                ++slot;
                continue;
            }
            visit_queue(queues_.value(slot));
            if (queues_.value(slot).empty()) {
                queues_.erase(slot);
            } else {
                ++slot;
            }
        }
    }

    template <typename Complete>
    void pop(std::deque<Pending>& queue, std::deque<Pending>::iterator at, Complete complete) {
        const Pending pending = *at;
        queue.erase(at);
        device_.release(pending.event);
        if (--pending.block->event_count == 0) {
            complete(pending.block);
        }
    }

    [[nodiscard]] std::uint64_t key_of(device::StreamHandle stream) const noexcept;

    device::Device& device_;
    SlotTable<std::deque<Pending>> queues_;
    std::vector<std::pair<device::StreamHandle, std::uint64_t>> ids_;
};

}  // namespace gpuviz::allocator
