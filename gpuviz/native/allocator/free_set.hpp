#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/block.hpp"

namespace gpuviz {

// Blocks of one stream ordered by (size, address). Sorted chunks below a sorted list of their
// largest keys: two binary searches over flat memory find a block, and an insertion moves half a
// chunk. Chunks are reused, so a set that has reached its size allocates nothing.
class OrderedBlocks {
  public:
    struct Position {
        std::size_t chunk;
        std::size_t index;
    };

    [[nodiscard]] bool empty() const noexcept { return chunks_.empty(); }
    // The first block that is at least as large; end() when there is none.
    [[nodiscard]] Position lower_bound(std::uint64_t size, Address address) const noexcept;
    [[nodiscard]] bool is_end(Position position) const noexcept {
        return position.chunk == chunks_.size();
    }
    [[nodiscard]] Position end() const noexcept { return {chunks_.size(), 0}; }
    [[nodiscard]] bool is_begin(Position position) const noexcept {
        return position.chunk == 0 && position.index == 0;
    }
    [[nodiscard]] Block* at(Position position) const noexcept {
        return chunks_[position.chunk]->blocks[position.index];
    }
    [[nodiscard]] Position next(Position position) const noexcept;
    [[nodiscard]] Position previous(Position position) const noexcept;

    void insert(Block* block);
    void erase(Position position) noexcept;

  private:
    static constexpr std::size_t kCapacity = 64;

    struct Key {
        std::uint64_t size;
        Address address;

        [[nodiscard]] bool operator<(const Key& other) const noexcept {
            return (size < other.size) | ((size == other.size) & (address < other.address));
        }
    };

    struct Chunk {
        std::size_t count = 0;
        std::array<Key, kCapacity> keys;
        std::array<Block*, kCapacity> blocks;
    };

    static std::size_t first_not_less(const Key* keys, std::size_t count, const Key& key) noexcept;
    void split(std::size_t chunk);
    void join_with_next(std::size_t chunk) noexcept;
    void drop(std::size_t chunk) noexcept;
    [[nodiscard]] std::unique_ptr<Chunk> new_chunk();

    std::vector<Key> largest_;  // of each chunk
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<std::unique_ptr<Chunk>> unused_;
};

// The free blocks of a pool, ordered by (stream, size, address).
class FreeSet {
  public:
    // The blocks of one stream; made when first asked for.
    [[nodiscard]] OrderedBlocks& of(StreamHandle stream);

    void insert(Block* block) { of(block->stream).insert(block); }
    void erase(const Block* block) {
        OrderedBlocks& blocks = of(block->stream);
        blocks.erase(blocks.lower_bound(block->size, block->address));
    }

    // Every block, in order.
    [[nodiscard]] std::vector<Block*> in_order() const;

  private:
    struct Stream {
        StreamHandle handle;
        std::unique_ptr<OrderedBlocks> blocks;
    };

    std::vector<Stream> streams_;  // by handle
};

}  // namespace gpuviz
