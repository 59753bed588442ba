#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "packing/block.hpp"
#include "packing/effort.hpp"

namespace gpuviz::packing {

enum class Answer : std::uint8_t { unknown, fits, does_not_fit };

// An exhaustive search for offsets below a capacity.
//
// If blocks fit, they fit so that none can be moved down alone. Such a packing is found by placing
// blocks in the order of their offsets, each on top of one placed before or at the bottom. As in
// MiniMalloc (Moffitt, ASPLOS 2023), a branch ends if the blocks that remain in a section cannot
// fit above the lowest offset that is left to them, and independent parts are searched one by one.
class Search {
  public:
    // The sections of the blocks must begin at 0. Size in memory: the pairs of overlapping blocks.
    Search(std::vector<Block> blocks, std::int64_t capacity);

    // Tries blocks with a lower rank first; gives up after this number of placed blocks.
    [[nodiscard]] Answer run(std::span<const std::uint32_t> rank, std::size_t most_placed,
                             Effort& effort);
    // Of the last run, if its answer was that the blocks fit.
    [[nodiscard]] const Offsets& offsets() const noexcept { return lowest_; }
    [[nodiscard]] const std::vector<Block>& blocks() const noexcept { return blocks_; }

  private:
    enum class Changed : std::uint8_t { placed, lowest, floor };
    struct Change {
        std::int64_t old;
        std::uint32_t which;
        Changed what;
    };
    // Sections [begin, end) and the blocks in them that are not placed; no other block reaches
    // them.
    struct Part {
        std::int32_t begin;
        std::int32_t end;
        Positions left;
    };

    [[nodiscard]] Answer solve(const Part& part, std::int64_t last_offset,
                               std::optional<std::uint32_t> last);
    [[nodiscard]] Positions candidates(const Part& part, std::int64_t last_offset,
                                       std::optional<std::uint32_t> last) const;
    [[nodiscard]] bool fits_above(std::int64_t offset, const Part& part) const;
    [[nodiscard]] std::vector<Part> parts_without(std::uint32_t block, const Part& part) const;
    // False: the blocks that remain cannot fit.
    [[nodiscard]] bool place(std::uint32_t block);
    [[nodiscard]] bool raise(std::uint32_t block, std::int64_t lowest);
    [[nodiscard]] bool propagate();
    void count(std::uint32_t block, std::int64_t sign);
    void undo(std::size_t changes);
    void mark(const Block& block, std::int64_t lowest_before);

    std::vector<Block> blocks_;
    std::int64_t capacity_;
    std::vector<Positions> neighbours_;  // of each block
    std::vector<Positions> members_;     // of each section
    // Of each block: whether it is placed, and its offset or the lowest that is left to it.
    std::vector<std::uint8_t> placed_;
    Offsets lowest_;
    // Of each section: bytes of the blocks not placed, the lowest offset left to any of them, how
    // many of them began before, and whether it is in `marked_`.
    std::vector<std::int64_t> loads_;
    std::vector<std::int64_t> floors_;
    std::vector<std::int32_t> spanning_;
    std::vector<std::uint8_t> is_marked_;
    std::vector<std::int32_t> marked_;
    std::vector<Change> changes_;
    std::span<const std::uint32_t> rank_;
    std::size_t placements_left_ = 0;
    std::uint64_t steps_ = 0;
    Effort* effort_ = nullptr;
};

}  // namespace gpuviz::packing
