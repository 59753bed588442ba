#include "packing/packing.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "packing/placement.hpp"
#include "packing/sections.hpp"

namespace gpuviz::packing {

namespace {

constexpr std::int64_t highest_load = std::int64_t{1} << 56;
// Changed orders that led to nothing lower, after which another is not expected to.
constexpr int most_in_vain = 300;

using Values = std::vector<double>;

// Blocks by descending values, those of equal ones as they were.
Positions descending(const Values& values, Positions order) {
    std::ranges::stable_sort(order, std::greater{},
                             [&](std::uint32_t block) { return values[block]; });
    return order;
}

// The most bytes of a section of each block.
Values most_loads(const Sections& known) {
    // A tree of maxima over the loads of sections.
    const std::size_t leaves = std::bit_ceil(known.loads.size());
    std::vector<std::int64_t> most(2 * leaves, 0);
    std::ranges::copy(known.loads, most.begin() + static_cast<std::ptrdiff_t>(leaves));
    for (std::size_t node = leaves - 1; node > 0; --node) {
        most[node] = std::max(most[2 * node], most[2 * node + 1]);
    }
    Values found;
    found.reserve(known.blocks.size());
    for (const Block& each : known.blocks) {
        std::size_t left = leaves + index(each.begin);
        std::size_t right = leaves + index(each.end);
        std::int64_t load = 0;
        for (; left < right; left /= 2, right /= 2) {
            if (left % 2 == 1) load = std::max(load, most[left++]);
            if (right % 2 == 1) load = std::max(load, most[--right]);
        }
        found.push_back(static_cast<double>(load));
    }
    return found;
}

// Places the blocks in several orders, then in changed ones, until they are as low as possible.
class Packer {
  public:
    Packer(std::span<const Block> blocks, Packing& best, Effort& effort)
        : blocks_(blocks), best_(best), effort_(effort), order_(blocks.size()) {
        std::iota(order_.begin(), order_.end(), 0U);
        best_.offsets = placed_over_time(blocks_);
        best_.height = checked_height(blocks_, best_.offsets);
    }

    void run(const Values& loads) {
        try_orders(loads);
        int in_vain = 0;
        while (in_vain < most_in_vain && !is_done()) in_vain = climb() ? 0 : in_vain + 1;
        best_.height = checked_height(blocks_, best_.offsets);
    }

    [[nodiscard]] bool is_done() { return best_.height == best_.load || effort_.is_spent(0); }

  private:
    void try_orders(const Values& loads) {
        Values sizes;
        Values lifetimes;
        Values areas;
        for (const Block& each : blocks_) {
            sizes.push_back(static_cast<double>(each.size));
            lifetimes.push_back(static_cast<double>(each.lifetime));
            areas.push_back(sizes.back() * lifetimes.back());
        }
        const Positions by_size = descending(sizes, order_);
        for (const Positions& order :
             {descending(sizes, descending(lifetimes, order_)), descending(areas, by_size),
              descending(loads, by_size), descending(lifetimes, by_size)}) {
            if (is_done()) return;
            place(order);
        }
    }

    // Places blocks that reach above the load earlier; returns whether that lowers the packing.
    bool climb() {
        Values place_of(order_.size());
        for (std::size_t each = 0; each < order_.size(); ++each) {
            const std::uint32_t block = order_[each];
            const bool is_above = best_.offsets[block] + blocks_[block].size > best_.load;
            const double share = is_above ? static_cast<double>(random_() >> 11) * 0x1p-53 : 1;
            place_of[block] = -static_cast<double>(each) * share;
        }
        const std::int64_t before = best_.height;
        place(descending(place_of, order_));
        return best_.height < before;
    }

    // Keeps the order and its offsets if they are as low as those before.
    void place(const Positions& order) {
        Placement placement(blocks_);
        std::uint64_t steps = 0;
        for (const std::uint32_t each : order) {
            placement.put_lowest(each);
            const std::uint64_t before = std::exchange(steps, placement.steps());
            if (placement.height() > best_.height || effort_.is_spent(steps - before)) return;
        }
        best_.height = placement.height();
        best_.offsets = placement.offsets();
        order_ = order;
    }

    std::span<const Block> blocks_;
    Packing& best_;
    Effort& effort_;
    Positions order_;  // of the best
    std::mt19937_64 random_{0};
};

}  // namespace

Packing pack(std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
             std::span<const std::int64_t> size, Effort& effort) {
    for (std::size_t each = 0; each < size.size(); ++each) {
        if (end[each] <= begin[each] || size[each] <= 0) {
            throw std::invalid_argument("a block must end after its begin and have bytes");
        }
        if (size[each] > highest_load) throw std::invalid_argument("a block exceeds 2**56 bytes");
    }
    Packing best;
    if (size.empty()) return best;
    const Sections known = sections(begin, end, size);
    const auto most = std::ranges::max_element(known.loads);
    best.load = *most;
    best.load_time = known.times[static_cast<std::size_t>(most - known.loads.begin())];
    if (best.load > highest_load) throw std::invalid_argument("the blocks exceed 2**56 bytes");
    Packer packer(known.blocks, best, effort);
    if (!packer.is_done()) packer.run(most_loads(known));
    return best;
}

}  // namespace gpuviz::packing
