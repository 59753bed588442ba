#include "packing/packing.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "packing/core_search.hpp"
#include "packing/placement.hpp"
#include "packing/reduction.hpp"
#include "packing/sections.hpp"

namespace gpuviz::packing {

namespace {

constexpr std::int64_t highest_load = std::int64_t{1} << 56;
// Of each length.
constexpr std::size_t most_windows = 8;

// The largest unit of which all sizes are multiples.
std::int64_t granule_of(std::span<const Block> blocks) {
    std::int64_t granule = 0;
    for (const Block& each : blocks) granule = std::gcd(granule, each.size);
    return granule;
}

// The search for a packing below one capacity.
class Target {
  public:
    Target(std::span<const Block> blocks, std::int64_t capacity, std::int64_t granule,
           Effort& effort)
        : blocks_(blocks), reduction_(reduced(blocks, capacity, granule, effort)) {
        for (const Core& core : reduction_.cores) {
            searches_.emplace_back(chosen(blocks, core.blocks), capacity - core.base, effort);
        }
    }

    void improve(std::size_t round, std::mt19937_64& random, Effort& effort) {
        for (CoreSearch& each : searches_) each.improve(round, random, effort);
    }

    [[nodiscard]] Answer answer() const {
        Answer found = Answer::fits;
        for (const CoreSearch& each : searches_) {
            if (each.answer() == Answer::does_not_fit) return Answer::does_not_fit;
            if (each.answer() == Answer::unknown) found = Answer::unknown;
        }
        return found;
    }

    // Nothing if there is no time left.
    [[nodiscard]] std::optional<Offsets> offsets(Effort& effort) const {
        Placement placement(blocks_);
        for (const auto& [block, offset] : reduction_.placed) placement.put(block, offset);
        for (std::size_t core = 0; core < searches_.size(); ++core) {
            const auto& [positions, base] = reduction_.cores[core];
            for (std::size_t each = 0; each < positions.size(); ++each) {
                placement.put(positions[each], base + searches_[core].offsets()[each]);
            }
        }
        std::uint64_t steps = placement.steps();
        for (const std::uint32_t each : reduction_.last) {
            placement.put_lowest(each);
            const std::uint64_t before = std::exchange(steps, placement.steps());
            if (effort.is_spent(steps - before)) return std::nullopt;
        }
        return placement.offsets();
    }

  private:
    std::span<const Block> blocks_;
    Reduction reduction_;
    std::vector<CoreSearch> searches_;
};

class Packer {
  public:
    Packer(const Sections& sections, std::uint64_t seed, Effort& effort)
        : blocks_(sections.blocks),
          by_load_(sections.loads.size()),
          granule_(granule_of(blocks_)),
          random_(seed),
          effort_(effort) {
        std::iota(by_load_.begin(), by_load_.end(), 0);
        std::ranges::stable_sort(by_load_, std::greater{}, [&](std::int32_t section) {
            return sections.loads[static_cast<std::size_t>(section)];
        });
    }

    void run(Packing& best) {
        keep(placed_over_time(blocks_), best);
        while (best.upper_bound > best.lower_bound && !effort_.is_spent(0)) {
            raise_bound_or_meet_it(best);
        }
    }

  private:
    void raise_bound_or_meet_it(Packing& best) {
        Target target(blocks_, best.lower_bound, granule_, effort_);
        keep(target.offsets(effort_), best);
        const std::int64_t bound = best.lower_bound;
        for (std::size_t round = 0; best.upper_bound > bound && best.lower_bound == bound;
             ++round) {
            if (effort_.is_spent(1000)) return;
            target.improve(round, random_, effort_);
            if (target.answer() == Answer::does_not_fit) best.lower_bound += granule_;
            if (target.answer() == Answer::fits) keep(target.offsets(effort_), best);
            if (std::has_single_bit(round + 1)) {
                refute(round, best);
                narrow(round, best);
            }
        }
    }

    // Looks for times in which the blocks alone do not fit, around those with the highest loads.
    void refute(std::size_t rounds, Packing& best) {
        const auto half =
            static_cast<std::int32_t>(std::min<std::size_t>(4 * (rounds + 1), 1 << 20));
        if (static_cast<std::size_t>(half) >= by_load_.size()) return;
        std::vector<std::int32_t> seen;
        for (const std::int32_t section : by_load_) {
            if (seen.size() == most_windows) return;
            const bool is_new = std::ranges::none_of(
                seen, [&](std::int32_t other) { return std::abs(section - other) < half; });
            if (!is_new) continue;
            seen.push_back(section);
            const std::vector<Block> blocks = within(section - half, section + half);
            while (is_refuted(blocks, best.lower_bound, rounds)) {
                const std::int64_t granule = granule_of(blocks);
                best.lower_bound = (best.lower_bound / granule + 1) * granule;
            }
            if (best.lower_bound == best.upper_bound || effort_.is_spent(1000)) return;
        }
    }

    [[nodiscard]] bool is_refuted(const std::vector<Block>& blocks, std::int64_t capacity,
                                  std::size_t rounds) {
        Target target(blocks, capacity, granule_of(blocks), effort_);
        // Only the longest search of each doubling.
        for (std::size_t round = 0; round <= 4 * rounds; round = 2 * round + 2) {
            if (target.answer() != Answer::unknown || effort_.is_spent(1000)) break;
            target.improve(round, random_, effort_);
        }
        return target.answer() == Answer::does_not_fit;
    }

    // The blocks of sections [begin, end), cut off there.
    [[nodiscard]] std::vector<Block> within(std::int32_t begin, std::int32_t end) const {
        std::vector<Block> found;
        for (const Block& each : blocks_) {
            if (each.end <= begin || each.begin >= end) continue;
            Block cut = each;
            cut.begin = std::max(each.begin, begin) - std::max(begin, 0);
            cut.end = std::min(each.end, end) - std::max(begin, 0);
            found.push_back(cut);
        }
        return found;
    }

    // Looks for packings between the bounds: halfway, and nearer to the best if none is found.
    void narrow(std::size_t rounds, Packing& best) {
        for (int shift = 1; shift <= 3; ++shift) {
            const std::int64_t steps = (best.upper_bound - best.lower_bound) / granule_;
            const std::int64_t capacity = best.upper_bound - ((steps >> shift) * granule_);
            if (steps >> shift == 0 || capacity == best.lower_bound) return;
            Target target(blocks_, capacity, granule_, effort_);
            for (std::size_t round = 0; round < rounds / 2 + 3; ++round) {
                if (effort_.is_spent(1000)) return;
                if (target.answer() != Answer::unknown) break;
                target.improve(round, random_, effort_);
            }
            keep(target.offsets(effort_), best);
            if (target.answer() == Answer::does_not_fit) best.lower_bound = capacity + granule_;
            if (target.answer() != Answer::unknown) shift = 0;
        }
    }

    void keep(std::optional<Offsets> offsets, Packing& best) const {
        if (!offsets) return;
        const std::int64_t height = checked_height(blocks_, *offsets);
        if (!best.offsets.empty() && height >= best.upper_bound) return;
        best.offsets = *std::move(offsets);
        best.upper_bound = height;
    }

    std::span<const Block> blocks_;
    std::vector<std::int32_t> by_load_;
    std::int64_t granule_;
    std::mt19937_64 random_;
    Effort& effort_;
};

}  // namespace

Packing pack(std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
             std::span<const std::int64_t> size, std::uint64_t seed, Effort& effort) {
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
    best.load = best.lower_bound = *most;
    best.load_time = known.times[static_cast<std::size_t>(most - known.loads.begin())];
    if (best.load > highest_load) throw std::invalid_argument("the blocks exceed 2**56 bytes");
    Packer(known, seed, effort).run(best);
    return best;
}

}  // namespace gpuviz::packing
