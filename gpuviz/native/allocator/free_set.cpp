#include "allocator/free_set.hpp"

#include <algorithm>

namespace gpuviz::allocator {

OrderedBlocks::OrderedBlocks() { index_[0].value = new_chunk(); }

OrderedBlocks::Position OrderedBlocks::lower_bound(std::uint64_t size,
                                                   device::Address address) const noexcept {
    const OrderedKey key = ordered_key(size, address);
    const std::size_t at = chunk_for(key);
    const Chunk& chunk = *index_[at].value;
    const std::size_t index = chunk.first_not_less(key);
    return index == chunk.count ? Position{at + 1, 0} : Position{at, index};
}

OrderedBlocks::Position OrderedBlocks::next(Position position) const noexcept {
    ++position.index;
    if (position.index == index_[position.chunk].value->count) {
        return {position.chunk + 1, 0};
    }
    return position;
}

OrderedBlocks::Position OrderedBlocks::previous(Position position) const noexcept {
    if (position.index == 0) {
        --position.chunk;
        position.index = index_[position.chunk].value->count;
    }
    --position.index;
    return position;
}

// At most two steps, because the capacity is one less than 16.
std::size_t OrderedBlocks::Chunk::first_not_less(OrderedKey key) const noexcept {
    const std::size_t first = count < 4 ? 0 : pass_less(entries.data(), 0, 4, key);
    return pass_less(entries.data(), first, 1, key);
}

void OrderedBlocks::insert(Block* block) {
    const OrderedKey key = ordered_key(block->size, block->address);
    std::size_t at = chunk_for(key);
    if (index_[at].value->count == kCapacity) {
        split(at);
        at += index_[at].key() < key ? 1 : 0;
    }
    Chunk& chunk = *index_[at].value;
    auto* entry = chunk.entries.data() + chunk.first_not_less(key);
    auto* last = chunk.entries.data() + chunk.count;
    std::copy_backward(entry, last, last + 1);
    *entry = {block->size, block->address, block};
    ++chunk.count;
}

void OrderedBlocks::erase(Position position) noexcept {
    Chunk& chunk = *index_[position.chunk].value;
    auto* entry = chunk.entries.data() + position.index;
    std::copy(entry + 1, chunk.entries.data() + chunk.count, entry);
    --chunk.count;
    chunk.entries[chunk.count] = {};
    if (chunk.count < kCapacity / 4 && position.chunk + 1 < count_) {
        join_with_next(position.chunk);
    } else if (chunk.count == 0 && count_ > 1) {
        drop_last_chunk();
    }
}

void OrderedBlocks::split(std::size_t at) {
    if (index_.size() < span(count_ + 1)) {
        index_.resize(span(count_ + 1));
    }
    Chunk& left = *index_[at].value;
    Chunk* right = new_chunk();
    left.count = kCapacity / 2;
    right->count = kCapacity - left.count;
    auto* half = left.entries.data() + left.count;
    std::copy_n(half, right->count, right->entries.data());
    std::fill_n(half, right->count, OrderedEntry<Block*>{});
    auto* limit = index_.data() + at;
    std::copy_backward(limit, index_.data() + count_, index_.data() + count_ + 1);
    ++count_;
    const auto& largest = left.entries[left.count - 1];
    limit[0] = {largest.size, largest.address, &left};
    limit[1].value = right;
}

void OrderedBlocks::join_with_next(std::size_t at) noexcept {
    Chunk& left = *index_[at].value;
    Chunk& right = *index_[at + 1].value;
    if (left.count > 0 && left.count + right.count > kCapacity / 2) {
        return;
    }
    std::copy_n(right.entries.data(), right.count, left.entries.data() + left.count);
    std::fill_n(right.entries.data(), right.count, OrderedEntry<Block*>{});
    left.count += right.count;
    right.count = 0;
    unused_.push_back(&right);
    auto* limit = index_.data() + at;
    std::copy(limit + 1, index_.data() + count_, limit);
    limit->value = &left;
    --count_;
    index_[count_] = {};
}

void OrderedBlocks::drop_last_chunk() noexcept {
    --count_;
    unused_.push_back(index_[count_].value);
    index_[count_] = {};
    index_[count_ - 1] = {.value = index_[count_ - 1].value};
}

OrderedBlocks::Chunk* OrderedBlocks::new_chunk() {
    if (unused_.empty()) {
        Chunk* chunk = &chunks_.emplace_back();
        unused_.reserve(chunks_.size());  // so that erase() never has to allocate
        return chunk;
    }
    Chunk* chunk = unused_.back();
    unused_.pop_back();
    return chunk;
}

OrderedBlocks& FreeSet::find(device::StreamHandle stream) {
    auto entry = streams_.begin();
    while (entry != streams_.end() && entry->handle < stream) {
        ++entry;
    }
    if (entry == streams_.end() || entry->handle != stream) {
        entry = streams_.insert(entry, {stream, std::make_unique<OrderedBlocks>()});
    }
    recent_stream_ = stream;
    recent_ = entry->blocks.get();
    return *recent_;
}

std::vector<Block*> FreeSet::in_order() const {
    std::vector<Block*> blocks;
    for (const Stream& stream : streams_) {
        const OrderedBlocks& ordered = *stream.blocks;
        for (auto at = ordered.empty() ? ordered.end() : OrderedBlocks::Position{0, 0};
             !ordered.is_end(at); at = ordered.next(at)) {
            blocks.push_back(ordered.at(at));
        }
    }
    return blocks;
}

}  // namespace gpuviz::allocator
