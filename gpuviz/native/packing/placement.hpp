#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packing/block.hpp"

namespace gpuviz::packing {

// Blocks placed one by one, each as low as it fits between those placed before.
class Placement {
  public:
    explicit Placement(std::span<const Block> blocks);

    // Places a block at an offset, at which no placed block may be in its way.
    void put(std::uint32_t block, std::int64_t offset);
    // Places a block as low as it fits; returns its offset.
    std::int64_t put_lowest(std::uint32_t block);

    [[nodiscard]] const Offsets& offsets() const noexcept { return offsets_; }
    [[nodiscard]] std::int64_t height() const noexcept { return height_; }
    // Placed blocks looked at so far, as a measure of time.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  private:
    struct Range {
        std::int64_t begin;
        std::int64_t end;
    };

    void collect_neighbours(const Block& block);

    std::span<const Block> blocks_;
    Offsets offsets_;
    std::int64_t height_ = 0;
    std::uint64_t steps_ = 0;
    // Positions by begin, and the reverse; one bit by begin for each placed block.
    Positions by_begin_;
    Positions rank_;
    std::vector<std::uint32_t> first_of_section_;
    std::vector<std::uint64_t> placed_;
    // A segment tree over sections: each placed block is in the nodes that make up its lifetime.
    std::size_t leaves_ = 1;
    std::vector<Positions> alive_;
    std::vector<Range> neighbours_;
};

// Offsets of blocks placed in the order of their begins, each in the smallest gap that is large
// enough, as an allocator does that does not know the future. In n log n steps.
[[nodiscard]] Offsets placed_over_time(std::span<const Block> blocks);

// The bytes above offset 0 that the blocks need. Throws std::logic_error if two overlap.
[[nodiscard]] std::int64_t checked_height(std::span<const Block> blocks, const Offsets& offsets);

}  // namespace gpuviz::packing
