#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/ordered_entries.hpp"

namespace gpuviz::allocator {

// Blocks of one stream ordered by (size, address), in sorted chunks with a sorted index: a lookup
// is two searches over flat memory, and an insertion moves half a chunk. Chunks are reused, so a
// set that has reached its maximum size no longer allocates.
class OrderedBlocks {
  public:
    struct Position {
        std::size_t chunk;
        std::size_t index;
    };

    OrderedBlocks();
    OrderedBlocks(const OrderedBlocks&) = delete;
    OrderedBlocks& operator=(const OrderedBlocks&) = delete;

    [[nodiscard]] bool empty() const noexcept { return index_[0].value->count == 0; }
    // The first block not less than (size, address); end() if there is none.
    [[nodiscard]] Position lower_bound(std::uint64_t size, device::Address address) const noexcept;
    [[nodiscard]] bool is_end(Position position) const noexcept { return position.chunk == count_; }
    [[nodiscard]] Position end() const noexcept { return {count_, 0}; }
    [[nodiscard]] bool is_begin(Position position) const noexcept {
        return position.chunk == 0 && position.index == 0;
    }
    [[nodiscard]] Block* at(Position position) const noexcept {
        return index_[position.chunk].value->entries[position.index].value;
    }
    [[nodiscard]] Position next(Position position) const noexcept;
    [[nodiscard]] Position previous(Position position) const noexcept;

    void insert(Block* block);
    void erase(Position position) noexcept;

  private:
    static constexpr std::size_t kCapacity = 15;

    struct Chunk {
        [[nodiscard]] std::size_t first_not_less(OrderedKey key) const noexcept;

        std::size_t count = 0;
        std::array<OrderedEntry<Block*>, kCapacity> entries;  // empty ones last
    };

    // The chunk that contains a key, or would contain it.
    [[nodiscard]] std::size_t chunk_for(OrderedKey key) const noexcept {
        return first_not_less(index_.data(), count_ - 1, key);
    }
    void split(std::size_t at);
    void join_with_next(std::size_t at) noexcept;
    void drop_last_chunk() noexcept;
    [[nodiscard]] Chunk* new_chunk();

    // The chunks in order, each under an upper bound of its keys; the last one under the key of an
    // empty entry. Empty entries follow.
    std::vector<OrderedEntry<Chunk*>> index_{1};
    std::size_t count_ = 1;  // of chunks in use; only a single one may be empty
    std::deque<Chunk> chunks_;
    std::vector<Chunk*> unused_;
};

// The free blocks of a pool, ordered by (stream, size, address).
class FreeSet {
  public:
    // The blocks of one stream; created on first use.
    [[nodiscard]] OrderedBlocks& of(device::StreamHandle stream) {
        return stream == recent_stream_ && recent_ != nullptr ? *recent_ : find(stream);
    }

    void insert(Block* block) { of(block->stream).insert(block); }
    void erase(const Block* block) {
        OrderedBlocks& blocks = of(block->stream);
        blocks.erase(blocks.lower_bound(block->size, block->address));
    }

    // Every block, in order.
    [[nodiscard]] std::vector<Block*> in_order() const;

  private:
    struct Stream {
        device::StreamHandle handle;
        std::unique_ptr<OrderedBlocks> blocks;
    };

    [[nodiscard]] OrderedBlocks& find(device::StreamHandle stream);

    std::vector<Stream> streams_;             // by handle
    device::StreamHandle recent_stream_ = 0;  // of `recent_`
    OrderedBlocks* recent_ = nullptr;         // the last result of of()
};

}  // namespace gpuviz::allocator
