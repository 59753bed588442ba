#include "packing/time_search.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

namespace gpuviz::packing {

namespace {

constexpr std::size_t most_levels = 1000;  // of recursion: one for each block
constexpr std::size_t most_sums = 2000;
constexpr std::size_t most_failed = 100'000;
constexpr std::int32_t sections_ahead = 24;
// Blocks that are distributed over gaps exhaustively.
constexpr std::size_t most_distributed = 12;

void keep_distinct(std::vector<std::int64_t>& values) {
    std::ranges::sort(values);
    const auto [first, last] = std::ranges::unique(values);
    values.erase(first, last);
}

// Calls `found` with the begin and the end of each gap between placed blocks.
template <typename State, typename Found>
void each_gap(const State& state, std::int64_t capacity, std::int32_t section, Found found) {
    std::int64_t top = 0;
    for (const auto& each : state) {
        if (each.end <= section) continue;
        if (each.offset > top) found(top, each.offset);
        top = each.offset + each.size;
    }
    if (capacity > top) found(top, capacity);
}

bool fit_into(std::vector<std::int64_t>& gaps, std::span<const std::int64_t> sizes,
              std::uint64_t& steps) {
    if (sizes.empty()) return true;
    steps += 4 * gaps.size();
    for (std::size_t each = 0; each < gaps.size(); ++each) {
        const std::int64_t gap = gaps[each];
        const auto here = gaps.begin() + static_cast<std::ptrdiff_t>(each);
        if (gap < sizes.front() || std::find(gaps.begin(), here, gap) != here) continue;
        gaps[each] -= sizes.front();
        const bool do_fit = fit_into(gaps, sizes.subspan(1), steps);
        gaps[each] = gap;
        if (do_fit) return true;
    }
    return false;
}

}  // namespace

TimeSearch::TimeSearch(std::vector<Block> blocks, std::int64_t capacity)
    : blocks_(std::move(blocks)),
      capacity_(capacity),
      sums_(blocks_.size()),
      has_sums_(blocks_.size() <= most_levels),
      offsets_(blocks_.size(), 0) {
    std::int32_t sections = 0;
    for (const Block& each : blocks_) sections = std::max(sections, each.end);
    begun_.resize(index(sections));
    for (std::uint32_t each = 0; each < blocks_.size(); ++each) {
        begun_[index(blocks_[each].begin)].push_back(each);
    }
    std::vector<std::int64_t> sums{0};
    for (std::size_t section = begun_.size(); section-- > 0 && has_sums_;) {
        Positions& begun = begun_[section];
        std::ranges::stable_sort(begun, std::greater{}, [&](std::uint32_t each) {
            return std::pair(blocks_[each].size, -blocks_[each].end);
        });
        for (std::size_t each = begun.size(); each-- > 0 && has_sums_;) {
            sums_[begun[each]] = sums;
            const std::int64_t size = blocks_[begun[each]].size;
            const std::size_t known = sums.size();
            for (std::size_t sum = 0; sum < known; ++sum) {
                if (sums[sum] + size <= capacity_) sums.push_back(sums[sum] + size);
            }
            keep_distinct(sums);
            has_sums_ = sums.size() <= most_sums;
        }
    }
}

Answer TimeSearch::run(std::size_t most_placed, Effort& effort) {
    if (!has_sums_) return Answer::unknown;
    is_by_end_ = !is_by_end_;
    placements_left_ = most_placed;
    effort_ = &effort;
    return solve(0, {});
}

Answer TimeSearch::solve(std::int32_t section, State state) {
    if (index(section) == begun_.size()) return Answer::fits;
    std::erase_if(state, [&](const Placed& each) { return each.end <= section; });
    std::vector<std::int64_t> key{section};
    for (const Placed& each : state) {
        key.insert(key.end(), {each.offset, each.size, each.end});
    }
    if (failed_.contains(key)) return Answer::does_not_fit;
    const Answer answer = place(section, 0, state);
    if (answer == Answer::does_not_fit && failed_.size() < most_failed) {
        failed_.insert(std::move(key));
    }
    return answer;
}

// Places the blocks that begin in the section from the next one on, and all later ones.
Answer TimeSearch::place(std::int32_t section, std::size_t next, State& state) {
    const Positions& begun = begun_[index(section)];
    if (next == begun.size()) {
        return can_continue(section, state) ? solve(section + 1, state) : Answer::does_not_fit;
    }
    const std::uint32_t block = begun[next];
    const Block& placed = blocks_[block];
    std::int64_t lowest = 0;
    if (next > 0) {
        const std::uint32_t before = begun[next - 1];
        // Equal blocks can be exchanged.
        const bool is_equal =
            blocks_[before].size == placed.size && blocks_[before].end == placed.end;
        if (is_equal) lowest = offsets_[before] + placed.size;
    }
    for (const std::int64_t offset : candidates(block, lowest, state)) {
        steps_ += 100 + 20 * state.size();
        if (placements_left_ == 0 || effort_->is_spent(std::exchange(steps_, 0))) {
            return Answer::unknown;
        }
        --placements_left_;
        const auto above = std::ranges::upper_bound(state, offset, {}, &Placed::offset);
        const auto place_of = above - state.begin();
        state.insert(above, {offset, placed.size, placed.end});
        offsets_[block] = offset;
        const Answer answer = place(section, next + 1, state);
        if (answer != Answer::does_not_fit) return answer;
        state.erase(state.begin() + place_of);
    }
    return Answer::does_not_fit;
}

// Offsets for a block that are free, those in the smallest gaps and at their borders first.
std::vector<std::int64_t> TimeSearch::candidates(std::uint32_t block, std::int64_t lowest,
                                                 const State& state) const {
    const std::vector<std::int64_t>& sums = sums_[block];
    const std::int64_t size = blocks_[block].size;
    std::vector<std::tuple<std::int64_t, int, std::int32_t, std::int64_t>> found;
    each_gap(state, capacity_, 0, [&](std::int64_t begin, std::int64_t end) {
        const auto add = [&](std::int64_t from) {
            auto sum = std::ranges::lower_bound(sums, std::max(begin, lowest) - from);
            for (; sum != sums.end() && from + *sum + size <= end; ++sum) {
                const std::int64_t offset = from + *sum;
                const int inner = (offset > begin ? 1 : 0) + (offset + size < end ? 1 : 0);
                const std::int32_t apart = is_by_end_ ? difference(block, offset, state) : 0;
                found.emplace_back(end - begin, inner, apart, offset);
            }
        };
        add(0);
        for (const Placed& each : state) {
            if (each.offset < begin) add(each.offset + each.size);
        }
    });
    std::ranges::sort(found);
    std::vector<std::int64_t> offsets;
    for (const auto& each : found) {
        const std::int64_t offset = std::get<3>(each);
        if (offsets.empty() || offsets.back() != offset) offsets.push_back(offset);
    }
    return offsets;
}

std::int32_t TimeSearch::difference(std::uint32_t block, std::int64_t offset,
                                    const State& state) const {
    const std::int64_t top = offset + blocks_[block].size;
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    for (const Placed& each : state) {
        if (each.offset + each.size != offset && each.offset != top) continue;
        least = std::min(least, std::abs(each.end - blocks_[block].end));
    }
    return least;
}

bool TimeSearch::can_continue(std::int32_t section, const State& state) {
    Positions begun;
    const auto sections = static_cast<std::int32_t>(begun_.size());
    const std::int32_t last = std::min(section + 1 + sections_ahead, sections);
    std::vector<std::int64_t> gaps;
    std::vector<std::int64_t> sizes;
    for (std::int32_t later = section + 1; later < last; ++later) {
        begun.insert(begun.end(), begun_[index(later)].begin(), begun_[index(later)].end());
        sizes.clear();
        for (const std::uint32_t each : begun) {
            if (blocks_[each].end > later) sizes.push_back(blocks_[each].size);
        }
        if (sizes.size() > most_distributed) break;
        gaps.clear();
        each_gap(state, capacity_, later,
                 [&](std::int64_t begin, std::int64_t end) { gaps.push_back(end - begin); });
        std::ranges::sort(gaps);
        std::ranges::sort(sizes, std::greater{});
        if (!fit_into(gaps, sizes, steps_)) return false;
    }
    return true;
}

}  // namespace gpuviz::packing
