#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/last_use.hpp"
#include "allocator/slot_table.hpp"
#include "device/device.hpp"

namespace gpuviz::allocator {

// The events that freed blocks wait for, in one FIFO queue per stream. A block counts its events in
// `event_count`.
template <typename Waiting>
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
    void record(Waiting* block, device::StreamHandle stream);
    // Makes `block` wait for the event of a use, which may be recorded later.
    void wait_for(Waiting* block, std::shared_ptr<LastUse> use);
    // Whether the event of a use may still have to be recorded.
    [[nodiscard]] bool has_unrecorded() const noexcept { return has_unrecorded_; }

    // Removes completed events from the front of each queue, and calls `complete(block)` for each
    // block that no longer waits.
    template <typename Complete>
    void reap(Complete complete) {
        has_unrecorded_ = false;
        visit([&](std::deque<Pending>& queue) {
            while (!queue.empty() && is_complete(queue.front())) {
                pop(queue, queue.begin(), complete);
            }
        });
    }

    // Waits for the events of the blocks that `belongs` accepts.
    template <typename Belongs, typename Complete>
    void synchronize(Belongs belongs, Complete complete) {
        visit([&](std::deque<Pending>& queue) {
            for (std::size_t at = 0; at < queue.size();) {
                const Pending& pending = queue[at];
                if (!belongs(pending.block) || !pending.is_recorded()) {
                    ++at;
                    continue;
                }
                device_.synchronize(pending.event_of());
                pop(queue, queue.begin() + static_cast<std::ptrdiff_t>(at), complete);
            }
        });
    }

    // Discards every event; for the destructor of the allocator.
    void discard() {
        visit([&](std::deque<Pending>& queue) {
            for (const Pending& pending : queue) {
                if (pending.use == nullptr) {
                    device_.release(pending.event);
                }
            }
            queue.clear();
        });
    }

  private:
    struct Pending {
        device::EventHandle event;  // if it is not a use's
        Waiting* block;
        std::uint64_t number;  // see LastUse
        std::shared_ptr<LastUse> use{};

        [[nodiscard]] bool is_recorded() const noexcept {
            return use == nullptr || use->is_recorded();
        }
        [[nodiscard]] device::EventHandle event_of() const noexcept {
            return use == nullptr ? event : use->event();
        }
    };

    [[nodiscard]] bool is_complete(const Pending& pending) {
        const bool is_recorded = pending.is_recorded();
        has_unrecorded_ = has_unrecorded_ || !is_recorded;
        return is_recorded && device_.is_complete(pending.event_of());
    }

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
    void pop(std::deque<Pending>& queue, const std::deque<Pending>::iterator& at,
             Complete complete) {
        const Pending pending = std::move(*at);
        queue.erase(at);
        if (pending.use == nullptr) {
            device_.release(pending.event);
        }
        if (--pending.block->event_count == 0) {
            complete(pending.block);
        }
    }

    [[nodiscard]] std::uint64_t key_of(device::StreamHandle stream) const noexcept;

    device::Device& device_;
    bool has_unrecorded_ = false;
    SlotTable<std::deque<Pending>> queues_;
    std::vector<std::pair<device::StreamHandle, std::uint64_t>> ids_;
};

}  // namespace gpuviz::allocator
