#include "packing/placement.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

namespace gpuviz::packing {

namespace {

constexpr std::size_t bits = 64;

template <typename Key>
Positions in_order(std::span<const Block> blocks, Key key) {
    Positions order(blocks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t each) { return key(blocks[each]); });
    return order;
}

std::int32_t last_section(std::span<const Block> blocks) {
    std::int32_t last = 0;
    for (const Block& each : blocks) last = std::max(last, each.end);
    return last;
}

// Calls `at_begin` and `at_end` for each block in the order of time, ends first.
template <typename AtBegin, typename AtEnd>
void over_time(std::span<const Block> blocks, AtBegin at_begin, AtEnd at_end) {
    const Positions begins = in_order(blocks, [](const Block& each) { return each.begin; });
    const Positions ends = in_order(blocks, [](const Block& each) { return each.end; });
    auto ended = ends.begin();
    for (const std::uint32_t each : begins) {
        for (; blocks[*ended].end <= blocks[each].begin; ++ended) at_end(*ended);
        at_begin(each);
    }
}

// The free ranges between the blocks of a moment.
class Gaps {
  public:
    Gaps() { add(0, std::numeric_limits<std::int64_t>::max()); }

    std::int64_t take(std::int64_t size) {
        const auto [length, begin] = *by_size_.lower_bound({size, 0});
        remove(begin, begin + length);
        if (size < length) add(begin + size, begin + length);
        return begin;
    }
    void release(std::int64_t begin, std::int64_t end) {
        const auto next = by_begin_.lower_bound(begin);
        if (next != by_begin_.begin()) {
            const auto [before_begin, before_end] = *std::prev(next);
            if (before_end == begin) {
                remove(before_begin, before_end);
                begin = before_begin;
            }
        }
        const auto after = by_begin_.lower_bound(end);
        if (after != by_begin_.end() && after->first == end) {
            const auto after_end = after->second;
            remove(end, after_end);
            end = after_end;
        }
        add(begin, end);
    }

  private:
    void add(std::int64_t begin, std::int64_t end) {
        by_begin_.emplace(begin, end);
        by_size_.emplace(end - begin, begin);
    }
    void remove(std::int64_t begin, std::int64_t end) {
        by_begin_.erase(begin);
        by_size_.erase({end - begin, begin});
    }

    std::map<std::int64_t, std::int64_t> by_begin_;
    std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
};

}  // namespace

Placement::Placement(std::span<const Block> blocks)
    : blocks_(blocks),
      offsets_(blocks.size(), 0),
      by_begin_(in_order(blocks, [](const Block& each) { return each.begin; })),
      rank_(blocks.size()),
      placed_(blocks.size() / bits + 1, 0) {
    const auto sections = static_cast<std::size_t>(last_section(blocks));
    first_of_section_.assign(sections + 1, 0);
    for (const Block& each : blocks) ++first_of_section_[static_cast<std::size_t>(each.begin) + 1];
    std::partial_sum(first_of_section_.begin(), first_of_section_.end(), first_of_section_.begin());
    for (std::uint32_t rank = 0; rank < rank_.size(); ++rank) rank_[by_begin_[rank]] = rank;
    leaves_ = std::bit_ceil(std::max<std::size_t>(sections, 1));
    alive_.resize(2 * leaves_);
}

void Placement::put(std::uint32_t block, std::int64_t offset) {
    offsets_[block] = offset;
    height_ = std::max(height_, offset + blocks_[block].size);
    placed_[rank_[block] / bits] |= std::uint64_t{1} << rank_[block] % bits;
    std::size_t left = leaves_ + static_cast<std::size_t>(blocks_[block].begin);
    std::size_t right = leaves_ + static_cast<std::size_t>(blocks_[block].end);
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2 == 1) alive_[left++].push_back(block);
        if (right % 2 == 1) alive_[--right].push_back(block);
    }
}

void Placement::collect_neighbours(const Block& block) {
    neighbours_.clear();
    const auto add = [&](std::uint32_t other) {
        neighbours_.push_back({offsets_[other], offsets_[other] + blocks_[other].size});
    };
    const auto begin = static_cast<std::size_t>(block.begin);
    for (std::size_t node = leaves_ + begin; node > 0; node /= 2) {
        for (const std::uint32_t other : alive_[node]) add(other);
    }
    // Those that begin later; the ones that begin in the same section are alive in it.
    const std::size_t first = first_of_section_[begin + 1];
    const std::size_t last = first_of_section_[static_cast<std::size_t>(block.end)];
    for (std::size_t word = first / bits; word * bits < last; ++word) {
        std::uint64_t found = placed_[word];
        if (word == first / bits) found &= ~std::uint64_t{0} << first % bits;
        for (; found != 0; found &= found - 1) {
            const auto rank = word * bits + static_cast<std::size_t>(std::countr_zero(found));
            if (rank >= last) break;
            add(by_begin_[rank]);
        }
        ++steps_;
    }
    steps_ += 16 * (neighbours_.size() + 1);
}

std::int64_t Placement::put_lowest(std::uint32_t block) {
    collect_neighbours(blocks_[block]);
    std::ranges::sort(neighbours_, {}, &Range::begin);
    std::int64_t offset = 0;
    for (const Range& each : neighbours_) {
        if (each.begin - offset >= blocks_[block].size) break;
        offset = std::max(offset, each.end);
    }
    put(block, offset);
    return offset;
}

Offsets placed_over_time(std::span<const Block> blocks) {
    Offsets offsets(blocks.size());
    Gaps gaps;
    over_time(
        blocks, [&](std::uint32_t each) { offsets[each] = gaps.take(blocks[each].size); },
        [&](std::uint32_t each) {
            gaps.release(offsets[each], offsets[each] + blocks[each].size);
        });
    return offsets;
}

std::int64_t checked_height(std::span<const Block> blocks, const Offsets& offsets) {
    std::map<std::int64_t, std::int64_t> ends;  // of the blocks of a moment, by offset
    std::int64_t height = 0;
    const auto begin_one = [&](std::uint32_t each) {
        const std::int64_t end = offsets[each] + blocks[each].size;
        const auto [place, is_free] = ends.emplace(offsets[each], end);
        const bool is_above = place == ends.begin() || std::prev(place)->second <= place->first;
        const bool is_below = std::next(place) == ends.end() || std::next(place)->first >= end;
        if (!is_free || !is_above || !is_below) {
            throw std::logic_error("two blocks of a packing overlap");
        }
        height = std::max(height, end);
    };
    over_time(blocks, begin_one, [&](std::uint32_t each) { ends.erase(offsets[each]); });
    return height;
}

}  // namespace gpuviz::packing
