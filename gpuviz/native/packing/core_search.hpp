#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "packing/block.hpp"
#include "packing/effort.hpp"
#include "packing/search.hpp"
#include "packing/time_search.hpp"

namespace gpuviz::packing {

// Packings of some blocks, better and better, until one is below the capacity or none can be.
class CoreSearch {
  public:
    // Places the blocks in several orders.
    CoreSearch(std::vector<Block> blocks, std::int64_t capacity, Effort& effort);

    // Searches exhaustively but not for long, by offsets from another beginning in each round, and
    // over time; or, if there are many blocks, changes the order in which they are placed.
    void improve(std::size_t round, std::mt19937_64& random, Effort& effort);

    [[nodiscard]] Answer answer() const noexcept { return answer_; }
    // Of the best packing so far, which may be above the capacity.
    [[nodiscard]] const Offsets& offsets() const noexcept { return offsets_; }

  private:
    // Of a block: bytes, lifetime, bytes times lifetime, most bytes of a section.
    enum class Key : std::uint8_t { size, lifetime, area, load };

    void search(std::size_t round, std::mt19937_64& random, Effort& effort);
    void climb(std::mt19937_64& random, Effort& effort);
    // True: these offsets are kept, because they are as low as those before.
    bool place(const Positions& order, Effort& effort);
    [[nodiscard]] std::vector<double> values(Key key) const;

    std::vector<Block> blocks_;
    std::int64_t capacity_;
    bool is_searchable_;
    std::vector<std::int64_t> loads_;  // of each block: most bytes of its sections
    Answer answer_ = Answer::unknown;
    Offsets offsets_;
    std::int64_t height_;
    Positions order_;  // in which the blocks were placed
    std::optional<Search> search_;
    std::optional<TimeSearch> time_search_;
};

}  // namespace gpuviz::packing
