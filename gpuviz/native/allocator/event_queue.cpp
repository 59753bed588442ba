#include "allocator/event_queue.hpp"

#include <algorithm>

#include "allocator/block.hpp"
#include "allocator/host_block.hpp"

namespace gpuviz::allocator {

using device::StreamHandle;

template <typename Waiting>
void EventQueue<Waiting>::identify_stream(StreamHandle stream, std::uint64_t id) {
    std::erase_if(ids_, [&](const auto& entry) { return entry.first == stream; });
    ids_.emplace_back(stream, id);
}

// torch packs (device type 1 = CUDA, device, stream id) into 8, 8 and 48 bits.
template <typename Waiting>
std::uint64_t EventQueue<Waiting>::key_of(StreamHandle stream) const noexcept {
    const auto entry = std::find_if(ids_.begin(), ids_.end(),
                                    [&](const auto& pair) { return pair.first == stream; });
    const std::uint64_t id = entry == ids_.end() ? stream : entry->second;
    return (std::uint64_t{1} << 56) | (static_cast<std::uint64_t>(device_.ordinal()) << 48) | id;
}

template <typename Waiting>
std::vector<StreamHandle> EventQueue<Waiting>::in_slot_order(
    const std::vector<StreamHandle>& streams) const {
    SlotTable<StreamHandle> table;
    for (const StreamHandle stream : streams) {
        table[key_of(stream)] = stream;
    }
    std::vector<StreamHandle> ordered;
    for (std::size_t slot = 0; slot < table.slot_count(); ++slot) {
        if (table.has(slot)) {
            ordered.push_back(table.value(slot));
        }
    }
    return ordered;
}

template <typename Waiting>
void EventQueue<Waiting>::record(Waiting* block, StreamHandle stream) {
    queues_[key_of(stream)].push_back(
        {device_.record_event(stream), block, LastUse::next_number()});
    ++block->event_count;
}

// Blocks are freed in another order than they are used in. A queue is in the order of its events,
// so that none hides a complete one.
template <typename Waiting>
void EventQueue<Waiting>::wait_for(Waiting* block, std::shared_ptr<LastUse> use) {
    std::deque<Pending>& queue = queues_[key_of(use->stream)];
    const std::uint64_t number = use->number();
    const auto after = std::find_if(queue.rbegin(), queue.rend(), [&](const Pending& pending) {
        return pending.number <= number;
    });
    has_unrecorded_ = has_unrecorded_ || !use->is_recorded();
    queue.insert(after.base(), {0, block, number, std::move(use)});
    ++block->event_count;
}

template class EventQueue<Block>;
template class EventQueue<HostBlock>;

}  // namespace gpuviz::allocator
