#include "packing/search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace gpuviz::packing {

namespace {

constexpr auto nowhere = std::numeric_limits<std::int64_t>::max();

}  // namespace

Search::Search(std::vector<Block> blocks, std::int64_t capacity)
    : blocks_(std::move(blocks)), capacity_(capacity), neighbours_(blocks_.size()) {
    std::int32_t sections = 0;
    for (const Block& each : blocks_) sections = std::max(sections, each.end);
    members_.resize(index(sections));
    for (std::uint32_t each = 0; each < blocks_.size(); ++each) {
        for (std::int32_t s = blocks_[each].begin; s < blocks_[each].end; ++s) {
            members_[index(s)].push_back(each);
        }
        for (std::uint32_t other = 0; other < each; ++other) {
            if (!blocks_[each].overlaps(blocks_[other])) continue;
            neighbours_[each].push_back(other);
            neighbours_[other].push_back(each);
        }
    }
}

Answer Search::run(std::span<const std::uint32_t> rank, std::size_t most_placed, Effort& effort) {
    const std::size_t sections = members_.size();
    placed_.assign(blocks_.size(), 0);
    lowest_.assign(blocks_.size(), 0);
    loads_.assign(sections, 0);
    floors_.assign(sections, 0);
    spanning_.assign(sections, 0);
    is_marked_.assign(sections, 0);
    marked_.clear();
    changes_.clear();
    for (std::uint32_t each = 0; each < blocks_.size(); ++each) count(each, 1);
    rank_ = rank;
    placements_left_ = most_placed;
    effort_ = &effort;
    Part all{0, static_cast<std::int32_t>(sections), Positions(blocks_.size())};
    std::iota(all.left.begin(), all.left.end(), 0U);
    return fits_above(0, all) ? solve(all, 0, std::nullopt) : Answer::does_not_fit;
}

Answer Search::solve(const Part& part, std::int64_t last_offset,
                     std::optional<std::uint32_t> last) {
    for (const std::uint32_t block : candidates(part, last_offset, last)) {
        const std::int64_t offset = lowest_[block];
        // The other candidates are not lower.
        if (!fits_above(offset, part)) break;
        steps_ += 8 * part.left.size() + index(part.end - part.begin);
        if (placements_left_ == 0 || effort_->is_spent(std::exchange(steps_, 0))) {
            return Answer::unknown;
        }
        --placements_left_;
        const std::size_t before = changes_.size();
        Answer answer = place(block) ? Answer::fits : Answer::does_not_fit;
        if (answer == Answer::fits) {
            for (const Part& each : parts_without(block, part)) {
                answer = solve(each, offset, block);
                if (answer != Answer::fits) break;
            }
        }
        if (answer != Answer::does_not_fit) return answer;
        undo(before);
    }
    return Answer::does_not_fit;
}

// The blocks that can be the next in the order of offsets, and of ranks at the same offset, lowest
// first. A block that fits below the next one has no place later on, so it cannot be higher.
Positions Search::candidates(const Part& part, std::int64_t last_offset,
                             std::optional<std::uint32_t> last) const {
    std::int64_t lowest_top = nowhere;
    for (const std::uint32_t each : part.left) {
        lowest_top = std::min(lowest_top, lowest_[each] + blocks_[each].size);
    }
    Positions found;
    for (const std::uint32_t each : part.left) {
        const std::int64_t offset = lowest_[each];
        const bool is_later = offset > last_offset || !last || rank_[each] > rank_[*last];
        if (offset >= last_offset && is_later && offset < lowest_top) found.push_back(each);
    }
    std::ranges::sort(found, {},
                      [&](std::uint32_t each) { return std::pair(lowest_[each], rank_[each]); });
    return found;
}

bool Search::fits_above(std::int64_t offset, const Part& part) const {
    for (std::int32_t s = part.begin; s < part.end; ++s) {
        if (std::max(floors_[index(s)], offset) + loads_[index(s)] > capacity_) return false;
    }
    return true;
}

// The independent parts that remain after a block was placed, smallest first.
std::vector<Search::Part> Search::parts_without(std::uint32_t block, const Part& part) const {
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of(index(part.end - part.begin));
    for (std::int32_t s = part.begin; s < part.end; ++s) {
        if (s == part.begin || spanning_[index(s)] == 0) parts.push_back({s, s, {}});
        parts.back().end = s + 1;
        part_of[index(s - part.begin)] = static_cast<std::uint32_t>(parts.size() - 1);
    }
    for (const std::uint32_t each : part.left) {
        if (each == block) continue;
        parts[part_of[index(blocks_[each].begin - part.begin)]].left.push_back(each);
    }
    std::erase_if(parts, [](const Part& each) { return each.left.empty(); });
    std::ranges::stable_sort(parts, {}, [](const Part& each) { return each.left.size(); });
    return parts;
}

bool Search::place(std::uint32_t block) {
    changes_.push_back({0, block, Changed::placed});
    placed_[block] = 1;
    count(block, -1);
    mark(blocks_[block], 0);
    const std::int64_t top = lowest_[block] + blocks_[block].size;
    steps_ += neighbours_[block].size();
    for (const std::uint32_t each : neighbours_[block]) {
        if (placed_[each] == 0 && lowest_[each] < top && !raise(each, top)) return false;
    }
    return propagate();
}

bool Search::raise(std::uint32_t block, std::int64_t lowest) {
    changes_.push_back({lowest_[block], block, Changed::lowest});
    mark(blocks_[block], lowest_[block]);
    lowest_[block] = lowest;
    return lowest + blocks_[block].size <= capacity_;
}

// Computes the floors of marked sections. Where only one block is left that can be the lowest
// without wasting too much below it, the others are above it.
bool Search::propagate() {
    for (std::size_t next = 0; next < marked_.size(); ++next) {
        const std::size_t section = index(marked_[next]);
        is_marked_[section] = 0;
        std::int64_t floor = nowhere;
        std::int64_t second = nowhere;
        std::uint32_t first = 0;
        for (const std::uint32_t each : members_[section]) {
            if (placed_[each] != 0 || lowest_[each] >= second) continue;
            second = lowest_[each];
            if (second >= floor) continue;
            std::swap(second, floor);
            first = each;
        }
        steps_ += 2 * members_[section].size();
        if (floor == nowhere) continue;
        if (floor != floors_[section]) {
            changes_.push_back(
                {floors_[section], static_cast<std::uint32_t>(section), Changed::floor});
            floors_[section] = floor;
        }
        if (floor + loads_[section] > capacity_) return false;
        if (second == nowhere || second + loads_[section] <= capacity_) continue;
        const std::int64_t top = floor + blocks_[first].size;
        for (const std::uint32_t each : members_[section]) {
            const bool is_raised = placed_[each] == 0 && each != first && lowest_[each] < top;
            if (is_raised && !raise(each, top)) return false;
        }
    }
    marked_.clear();
    return true;
}

// Adds a block to the sections of its lifetime, or removes it.
void Search::count(std::uint32_t block, std::int64_t sign) {
    const Block& counted = blocks_[block];
    for (std::int32_t s = counted.begin; s < counted.end; ++s) {
        loads_[index(s)] += sign * counted.size;
        if (s > counted.begin) spanning_[index(s)] += static_cast<std::int32_t>(sign);
    }
}

void Search::undo(std::size_t changes) {
    for (; changes_.size() > changes; changes_.pop_back()) {
        const Change& last = changes_.back();
        if (last.what == Changed::lowest) {
            lowest_[last.which] = last.old;
        } else if (last.what == Changed::floor) {
            floors_[last.which] = last.old;
        } else {
            placed_[last.which] = 0;
            count(last.which, 1);
        }
    }
    for (const std::int32_t section : marked_) is_marked_[index(section)] = 0;
    marked_.clear();
}

// Marks the sections of a block whose floor it can have been.
void Search::mark(const Block& block, std::int64_t lowest_before) {
    for (std::int32_t s = block.begin; s < block.end; ++s) {
        if (is_marked_[index(s)] != 0 || floors_[index(s)] < lowest_before) continue;
        is_marked_[index(s)] = 1;
        marked_.push_back(s);
    }
}

}  // namespace gpuviz::packing
