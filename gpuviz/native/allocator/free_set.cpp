#include "allocator/free_set.hpp"

#include <algorithm>
#include <utility>

namespace gpuviz {

std::size_t OrderedBlocks::first_not_less(const Key* keys, std::size_t count,
                                          const Key& key) noexcept {
    std::size_t first = 0;
    while (count > 0) {
        const std::size_t half = count / 2;
        const bool less = keys[first + half] < key;
        first = less ? first + half + 1 : first;
        count = less ? count - half - 1 : half;
    }
    return first;
}

OrderedBlocks::Position OrderedBlocks::lower_bound(std::uint64_t size,
                                                   Address address) const noexcept {
    const Key key{size, address};
    const std::size_t chunk = first_not_less(largest_.data(), largest_.size(), key);
    if (chunk == chunks_.size()) {
        return end();
    }
    return {chunk, first_not_less(chunks_[chunk]->keys.data(), chunks_[chunk]->count, key)};
}

OrderedBlocks::Position OrderedBlocks::next(Position position) const noexcept {
    ++position.index;
    if (position.index == chunks_[position.chunk]->count) {
        return {position.chunk + 1, 0};
    }
    return position;
}

OrderedBlocks::Position OrderedBlocks::previous(Position position) const noexcept {
    if (position.index == 0) {
        --position.chunk;
        position.index = chunks_[position.chunk]->count;
    }
    --position.index;
    return position;
}

void OrderedBlocks::insert(Block* block) {
    const Key key{block->size, block->address};
    if (chunks_.empty()) {
        chunks_.push_back(new_chunk());
        largest_.push_back(key);
    }
    std::size_t at = first_not_less(largest_.data(), largest_.size(), key);
    at = std::min(at, chunks_.size() - 1);
    if (chunks_[at]->count == kCapacity) {
        split(at);
        at += largest_[at] < key ? 1 : 0;
    }
    Chunk& chunk = *chunks_[at];
    const std::size_t index = first_not_less(chunk.keys.data(), chunk.count, key);
    std::copy_backward(chunk.keys.data() + index, chunk.keys.data() + chunk.count,
                       chunk.keys.data() + chunk.count + 1);
    std::copy_backward(chunk.blocks.data() + index, chunk.blocks.data() + chunk.count,
                       chunk.blocks.data() + chunk.count + 1);
    chunk.keys[index] = key;
    chunk.blocks[index] = block;
    ++chunk.count;
    largest_[at] = chunk.keys[chunk.count - 1];
}

void OrderedBlocks::erase(Position position) noexcept {
    Chunk& chunk = *chunks_[position.chunk];
    std::copy(chunk.keys.data() + position.index + 1, chunk.keys.data() + chunk.count,
              chunk.keys.data() + position.index);
    std::copy(chunk.blocks.data() + position.index + 1, chunk.blocks.data() + chunk.count,
              chunk.blocks.data() + position.index);
    --chunk.count;
    if (chunk.count == 0) {
        drop(position.chunk);
        return;
    }
    largest_[position.chunk] = chunk.keys[chunk.count - 1];
    if (chunk.count < kCapacity / 4) {
        join_with_next(position.chunk);
    }
}

void OrderedBlocks::split(std::size_t at) {
    Chunk& left = *chunks_[at];
    std::unique_ptr<Chunk> right = new_chunk();
    constexpr std::size_t half = kCapacity / 2;
    std::copy(left.keys.data() + half, left.keys.data() + kCapacity, right->keys.data());
    std::copy(left.blocks.data() + half, left.blocks.data() + kCapacity, right->blocks.data());
    left.count = half;
    right->count = kCapacity - half;
    const auto after = static_cast<std::ptrdiff_t>(at) + 1;
    largest_.insert(largest_.begin() + after, largest_[at]);
    largest_[at] = left.keys[half - 1];
    chunks_.insert(chunks_.begin() + after, std::move(right));
}

void OrderedBlocks::join_with_next(std::size_t at) noexcept {
    if (at + 1 == chunks_.size()) {
        return;
    }
    Chunk& left = *chunks_[at];
    const Chunk& right = *chunks_[at + 1];
    if (left.count + right.count > kCapacity / 2) {
        return;
    }
    std::copy_n(right.keys.data(), right.count, left.keys.data() + left.count);
    std::copy_n(right.blocks.data(), right.count, left.blocks.data() + left.count);
    left.count += right.count;
    largest_[at] = largest_[at + 1];
    drop(at + 1);
}

void OrderedBlocks::drop(std::size_t at) noexcept {
    const auto offset = static_cast<std::ptrdiff_t>(at);
    chunks_[at]->count = 0;
    unused_.push_back(std::move(chunks_[at]));
    chunks_.erase(chunks_.begin() + offset);
    largest_.erase(largest_.begin() + offset);
}

std::unique_ptr<OrderedBlocks::Chunk> OrderedBlocks::new_chunk() {
    if (unused_.empty()) {
        // So that drop() never has to allocate.
        unused_.reserve(std::max(chunks_.size() + 1, chunks_.capacity()));
        return std::make_unique<Chunk>();
    }
    std::unique_ptr<Chunk> chunk = std::move(unused_.back());
    unused_.pop_back();
    return chunk;
}

OrderedBlocks& FreeSet::of(StreamHandle stream) {
    auto entry = streams_.begin();
    while (entry != streams_.end() && entry->handle < stream) {
        ++entry;
    }
    if (entry == streams_.end() || entry->handle != stream) {
        entry = streams_.insert(entry, {stream, std::make_unique<OrderedBlocks>()});
    }
    return *entry->blocks;
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

}  // namespace gpuviz
