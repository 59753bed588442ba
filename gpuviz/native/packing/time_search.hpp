#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "packing/block.hpp"
#include "packing/effort.hpp"
#include "packing/search.hpp"

namespace gpuviz::packing {

// An exhaustive search for offsets below a capacity, section after section.
//
// If blocks fit, they fit so that each lies at the bottom or on another. Follow those below a block
// down to the first that was placed before it, in the order of begins: the offset is the top of
// that one, or 0, and sizes of blocks that are placed later. Only such offsets are tried. What
// remains to be done depends on nothing but the places of the blocks that have not ended, so places
// that failed are remembered.
class TimeSearch {
  public:
    // The sections of the blocks must begin at 0.
    TimeSearch(std::vector<Block> blocks, std::int64_t capacity);

    // Gives up after this number of placed blocks, or at once if sizes add up to too many offsets.
    // A later run knows what failed before. Tries blocks first where they leave the smallest gaps,
    // or every other run next to blocks that end at about the same time.
    [[nodiscard]] Answer run(std::size_t most_placed, Effort& effort);
    // Of the last run, if its answer was that the blocks fit.
    [[nodiscard]] const Offsets& offsets() const noexcept { return offsets_; }

  private:
    struct Placed {
        std::int64_t offset;
        std::int64_t size;
        std::int32_t end;
    };
    using State = std::vector<Placed>;  // the blocks of a section, by offset

    [[nodiscard]] Answer solve(std::int32_t section, State state);
    [[nodiscard]] Answer place(std::int32_t section, std::size_t next, State& state);
    [[nodiscard]] std::vector<std::int64_t> candidates(std::uint32_t block, std::int64_t lowest,
                                                       const State& state) const;
    // The least difference between its end and that of a block next to it.
    [[nodiscard]] std::int32_t difference(std::uint32_t block, std::int64_t offset,
                                          const State& state) const;
    // False: the blocks of a later section do not fit between those placed.
    [[nodiscard]] bool can_continue(std::int32_t section, const State& state);

    std::vector<Block> blocks_;
    std::int64_t capacity_;
    std::vector<Positions> begun_;                 // in each section
    std::vector<std::vector<std::int64_t>> sums_;  // of sizes of blocks placed after each block
    bool has_sums_ = true;
    std::set<std::vector<std::int64_t>> failed_;
    bool is_by_end_ = true;
    Offsets offsets_;
    std::size_t placements_left_ = 0;
    std::uint64_t steps_ = 0;
    Effort* effort_ = nullptr;
};

}  // namespace gpuviz::packing
