#include "packing/core_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "packing/placement.hpp"

namespace gpuviz::packing {

namespace {

// Above these numbers of blocks, and of sections and overlapping blocks of each, added up, one
// round of an exhaustive search takes too long and too much memory.
constexpr std::size_t most_blocks = 10'000;
constexpr std::size_t most_links = 10'000'000;
// Placed blocks in the shortest searches.
constexpr std::size_t short_search = 1000;
constexpr std::size_t short_time_search = 20'000;

double between_0_and_1(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
}

// 1 1 2 1 1 2 4 ...: few long searches among many short ones (Luby, Sinclair, Zuckerman, 1993).
std::size_t luby(std::size_t round) {
    std::size_t left = round + 1;
    while (!std::has_single_bit(left + 1)) left -= std::bit_floor(left + 1) - 1;
    return (left + 1) / 2;
}

Positions descending(const std::vector<double>& first, const std::vector<double>& second) {
    Positions order(first.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t left, std::uint32_t right) {
        return std::pair(first[left], second[left]) > std::pair(first[right], second[right]);
    });
    return order;
}

bool is_searchable(const std::vector<Block>& blocks) {
    if (blocks.size() > most_blocks) return false;
    std::int32_t sections = 0;
    for (const Block& each : blocks) sections = std::max(sections, each.end);
    // Up to each section, and counted together.
    std::vector<std::size_t> begun(static_cast<std::size_t>(sections) + 1, 0);
    std::vector<std::size_t> ended(begun);
    for (const Block& each : blocks) {
        ++begun[static_cast<std::size_t>(each.begin) + 1];
        ++ended[static_cast<std::size_t>(each.end)];
    }
    std::partial_sum(begun.begin(), begun.end(), begun.begin());
    std::partial_sum(ended.begin(), ended.end(), ended.begin());
    std::size_t links = 0;
    for (const Block& each : blocks) {
        const auto begin = static_cast<std::size_t>(each.begin);
        const auto end = static_cast<std::size_t>(each.end);
        links += end - begin + begun[end] - ended[begin];
    }
    return links <= most_links;
}

std::vector<std::int64_t> most_loads(const std::vector<Block>& blocks) {
    std::int32_t sections = 0;
    for (const Block& each : blocks) sections = std::max(sections, each.end);
    // A tree of maxima over the loads of sections.
    const std::size_t leaves = std::bit_ceil(static_cast<std::size_t>(sections) + 1);
    std::vector<std::int64_t> most(2 * leaves, 0);
    for (const Block& each : blocks) {
        most[leaves + static_cast<std::size_t>(each.begin)] += each.size;
        most[leaves + static_cast<std::size_t>(each.end)] -= each.size;
    }
    std::partial_sum(most.begin() + static_cast<std::ptrdiff_t>(leaves), most.end(),
                     most.begin() + static_cast<std::ptrdiff_t>(leaves));
    for (std::size_t node = leaves - 1; node > 0; --node) {
        most[node] = std::max(most[2 * node], most[2 * node + 1]);
    }
    std::vector<std::int64_t> found;
    found.reserve(blocks.size());
    for (const Block& each : blocks) {
        std::size_t left = leaves + static_cast<std::size_t>(each.begin);
        std::size_t right = leaves + static_cast<std::size_t>(each.end);
        std::int64_t load = 0;
        for (; left < right; left /= 2, right /= 2) {
            if (left % 2 == 1) load = std::max(load, most[left++]);
            if (right % 2 == 1) load = std::max(load, most[--right]);
        }
        found.push_back(load);
    }
    return found;
}

}  // namespace

CoreSearch::CoreSearch(std::vector<Block> blocks, std::int64_t capacity, Effort& effort)
    : blocks_(std::move(blocks)),
      capacity_(capacity),
      is_searchable_(is_searchable(blocks_)),
      loads_(most_loads(blocks_)),
      offsets_(placed_over_time(blocks_)),
      height_(checked_height(blocks_, offsets_)) {
    std::vector<double> begins;
    for (const Block& each : blocks_) begins.push_back(-each.begin);
    order_ = descending(begins, values(Key::size));
    if (height_ <= capacity_) answer_ = Answer::fits;
    for (const auto& [first, second] :
         {std::pair(Key::size, Key::lifetime), std::pair(Key::area, Key::size),
          std::pair(Key::load, Key::size), std::pair(Key::lifetime, Key::size)}) {
        if (answer_ == Answer::fits) return;
        place(descending(values(first), values(second)), effort);
    }
}

void CoreSearch::improve(std::size_t round, std::mt19937_64& random, Effort& effort) {
    if (answer_ != Answer::unknown) return;
    if (is_searchable_) {
        search(round, random, effort);
    } else {
        climb(random, effort);
    }
}

void CoreSearch::search(std::size_t round, std::mt19937_64& random, Effort& effort) {
    constexpr std::array<std::array<Key, 3>, 3> keys{{{Key::lifetime, Key::area, Key::load},
                                                      {Key::load, Key::area, Key::lifetime},
                                                      {Key::load, Key::lifetime, Key::area}}};
    if (!search_) search_.emplace(blocks_, capacity_);
    const auto& [first, second, third] = keys[round % keys.size()];
    std::vector<double> firsts = values(first);
    if (round >= keys.size()) {
        for (double& each : firsts) each *= std::exp2(2 * between_0_and_1(random) - 1);
    }
    const std::vector<double> seconds = values(second);
    const std::vector<double> thirds = values(third);
    Positions order(blocks_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t left, std::uint32_t right) {
        return std::tuple(firsts[left], seconds[left], thirds[left]) >
               std::tuple(firsts[right], seconds[right], thirds[right]);
    });
    Positions rank(order.size());
    for (std::uint32_t each = 0; each < order.size(); ++each) rank[order[each]] = each;
    const std::size_t most_placed = short_search * luby(round) + 2 * blocks_.size();
    answer_ = search_->run(rank, most_placed, effort);
    if (answer_ == Answer::fits) offsets_ = search_->offsets();
    if (answer_ != Answer::unknown) return;
    if (!time_search_) time_search_.emplace(blocks_, capacity_);
    answer_ = time_search_->run(short_time_search * (round + 1), effort);
    if (answer_ == Answer::fits) offsets_ = time_search_->offsets();
}

// Blocks that reach above the capacity are placed earlier.
void CoreSearch::climb(std::mt19937_64& random, Effort& effort) {
    std::vector<double> place_of(order_.size());
    for (std::size_t each = 0; each < order_.size(); ++each) {
        const std::uint32_t block = order_[each];
        const bool is_above = offsets_[block] + blocks_[block].size > capacity_;
        const double share = is_above ? between_0_and_1(random) : 1;
        place_of[block] = -static_cast<double>(each) * share;
    }
    place(descending(place_of, std::vector<double>(order_.size(), 0)), effort);
}

bool CoreSearch::place(const Positions& order, Effort& effort) {
    Placement placement(blocks_);
    std::uint64_t steps = 0;
    for (const std::uint32_t each : order) {
        placement.put_lowest(each);
        const std::uint64_t before = std::exchange(steps, placement.steps());
        if (placement.height() > height_ || effort.is_spent(steps - before)) return false;
    }
    height_ = placement.height();
    offsets_ = placement.offsets();
    order_ = order;
    if (height_ <= capacity_) answer_ = Answer::fits;
    return true;
}

std::vector<double> CoreSearch::values(Key key) const {
    std::vector<double> found;
    found.reserve(blocks_.size());
    for (std::size_t each = 0; each < blocks_.size(); ++each) {
        const auto size = static_cast<double>(blocks_[each].size);
        const auto lifetime = static_cast<double>(blocks_[each].lifetime);
        switch (key) {
            case Key::size:
                found.push_back(size);
                break;
            case Key::lifetime:
                found.push_back(lifetime);
                break;
            case Key::area:
                found.push_back(size * lifetime);
                break;
            case Key::load:
                found.push_back(static_cast<double>(loads_[each]));
                break;
        }
    }
    return found;
}

}  // namespace gpuviz::packing
