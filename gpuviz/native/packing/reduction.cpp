#include "packing/reduction.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace gpuviz::packing {

namespace {

// Sums of the first values of a column that changes.
class RunningSums {
  public:
    explicit RunningSums(std::int32_t count) : nodes_(static_cast<std::size_t>(count) + 1, 0) {}

    void add(std::int32_t place, std::int64_t value) {
        for (auto i = static_cast<std::size_t>(place) + 1; i < nodes_.size(); i += i & (~i + 1)) {
            nodes_[i] += value;
        }
    }
    [[nodiscard]] std::int64_t before(std::int32_t place) const {
        std::int64_t sum = 0;
        for (auto i = static_cast<std::size_t>(place); i > 0; i &= i - 1) sum += nodes_[i];
        return sum;
    }

  private:
    std::vector<std::int64_t> nodes_;
};

std::int32_t section_count(const std::vector<Block>& blocks) {
    std::int32_t count = 0;
    for (const Block& each : blocks) count = std::max(count, each.end);
    return count;
}

// Blocks of one part of time, which begins at section 0.
struct Part {
    Positions positions;
    std::vector<Block> blocks;
    std::int64_t base;
};

// How many blocks overlap others, and their bytes.
class Neighbourhood {
  public:
    explicit Neighbourhood(const std::vector<Block>& blocks)
        : begun_(section_count(blocks) + 1),
          begun_bytes_(section_count(blocks) + 1),
          ended_(section_count(blocks) + 1),
          ended_bytes_(section_count(blocks) + 1) {
        for (const Block& each : blocks) add(each, 1);
    }

    void add(const Block& block, std::int64_t sign) {
        begun_.add(block.begin, sign);
        begun_bytes_.add(block.begin, sign * block.size);
        ended_.add(block.end, sign);
        ended_bytes_.add(block.end, sign * block.size);
    }
    // With the block itself.
    [[nodiscard]] std::int64_t count(const Block& block) const {
        return begun_.before(block.end) - ended_.before(block.begin + 1);
    }
    [[nodiscard]] std::int64_t bytes(const Block& block) const {
        return begun_bytes_.before(block.end) - ended_bytes_.before(block.begin + 1);
    }

  private:
    RunningSums begun_, begun_bytes_, ended_, ended_bytes_;
};

class Reducer {
  public:
    Reducer(std::span<const Block> blocks, std::int64_t capacity, std::int64_t granule,
            Effort& effort)
        : blocks_(blocks),
          capacity_(capacity),
          granule_(granule),
          effort_(effort),
          work_left_(16 * blocks.size() + 200'000) {
        Positions all(blocks.size());
        std::iota(all.begin(), all.end(), 0U);
        if (!all.empty()) open_.push_back({std::move(all), {blocks.begin(), blocks.end()}, 0});
    }

    Reduction run() {
        while (!open_.empty()) {
            Part part = std::move(open_.back());
            open_.pop_back();
            const std::size_t count = part.positions.size();
            const bool is_last = work_left_ < count || effort_.is_spent(100 * count);
            work_left_ -= std::min(work_left_, count);
            if (is_last) {
                found_.cores.push_back({std::move(part.positions), part.base});
            } else {
                reduce(std::move(part));
            }
        }
        std::ranges::reverse(found_.last);
        return std::move(found_);
    }

  private:
    void reduce(Part part) {
        const bool is_smaller = postpone(part);
        if (part.positions.empty()) return;
        if (is_smaller) part.blocks = chosen(blocks_, part.positions);
        if (split(part)) return;
        if (is_smaller) {
            open_.push_back(std::move(part));
        } else {
            found_.cores.push_back({std::move(part.positions), part.base});
        }
    }

    // Removes the blocks that can wait. False: there are none.
    bool postpone(Part& part) {
        Neighbourhood neighbours(part.blocks);
        std::vector<std::uint8_t> is_removed(part.blocks.size(), 0);
        for (std::size_t each = 0; each < part.blocks.size(); ++each) {
            const Block& block = part.blocks[each];
            const std::int64_t others = neighbours.bytes(block) - block.size;
            const std::int64_t free = capacity_ - part.base - others;
            // Each of the others has a gap below it, and there is one above them.
            const std::int64_t gaps = neighbours.count(block);
            if (free < 0 || free / gaps < block.size - granule_ ||
                free <= gaps * (block.size - granule_)) {
                continue;
            }
            neighbours.add(block, -1);
            is_removed[each] = 1;
            found_.last.push_back(part.positions[each]);
        }
        std::size_t each = 0;
        return std::erase_if(part.positions,
                             [&](std::uint32_t) { return is_removed[each++] != 0; }) > 0;
    }

    // Opens the independent parts without the blocks that overlap all others of theirs. False:
    // there is one part and no such block, and the part is as it was.
    bool split(const Part& part) {
        const auto sections = static_cast<std::size_t>(section_count(part.blocks));
        std::vector<std::int32_t> spanning(sections + 1, 0);
        for (const Block& each : part.blocks) {
            ++spanning[static_cast<std::size_t>(each.begin) + 1];
            --spanning[static_cast<std::size_t>(each.end)];
        }
        std::vector<std::size_t> part_of(sections, 0);
        std::size_t parts = 0;
        std::int32_t connected = 0;
        for (std::size_t section = 0; section < sections; ++section) {
            connected += spanning[section];
            if (section > 0 && connected == 0) ++parts;
            part_of[section] = parts;
        }
        std::vector<std::vector<std::size_t>> members(parts + 1);
        for (std::size_t each = 0; each < part.blocks.size(); ++each) {
            members[part_of[static_cast<std::size_t>(part.blocks[each].begin)]].push_back(each);
        }
        std::size_t at_bottom = 0;
        std::vector<Part> opened;
        for (const auto& of_part : members) {
            opened.push_back(without_widest(part, of_part));
            at_bottom += of_part.size() - opened.back().positions.size();
        }
        if (members.size() == 1 && at_bottom == 0) return false;
        for (Part& each : opened) {
            if (each.positions.empty()) continue;
            each.blocks = chosen(blocks_, each.positions);
            open_.push_back(std::move(each));
        }
        return true;
    }

    Part without_widest(const Part& part, const std::vector<std::size_t>& members) {
        std::int32_t first_end = std::numeric_limits<std::int32_t>::max();
        std::int32_t last_begin = 0;
        for (const std::size_t each : members) {
            first_end = std::min(first_end, part.blocks[each].end);
            last_begin = std::max(last_begin, part.blocks[each].begin);
        }
        Part rest{{}, {}, part.base};
        for (const std::size_t each : members) {
            const Block& block = part.blocks[each];
            if (block.begin < first_end && block.end > last_begin) {
                found_.placed.push_back({part.positions[each], rest.base});
                rest.base += block.size;
            } else {
                rest.positions.push_back(part.positions[each]);
            }
        }
        return rest;
    }

    std::span<const Block> blocks_;
    std::int64_t capacity_;
    std::int64_t granule_;
    Effort& effort_;
    std::size_t work_left_;  // in blocks looked at: a rule may apply once a block
    std::vector<Part> open_;
    Reduction found_;
};

}  // namespace

Reduction reduced(std::span<const Block> blocks, std::int64_t capacity, std::int64_t granule,
                  Effort& effort) {
    return Reducer(blocks, capacity, granule, effort).run();
}

std::vector<Block> chosen(std::span<const Block> blocks, std::span<const std::uint32_t> positions) {
    // A section is needed where a block begins after another ended.
    std::int32_t last = 0;
    for (const std::uint32_t each : positions) last = std::max(last, blocks[each].end);
    std::int32_t first = last;
    for (const std::uint32_t each : positions) first = std::min(first, blocks[each].begin);
    const auto place = [first](std::int32_t section) {
        return static_cast<std::size_t>(section - first);
    };
    std::vector<std::uint8_t> begins(place(last) + 1, 0);
    std::vector<std::uint8_t> ends(place(last) + 1, 0);
    for (const std::uint32_t each : positions) {
        begins[place(blocks[each].begin)] = 1;
        ends[place(blocks[each].end)] = 1;
    }
    // Of each old section, the number of needed ones that begin up to it.
    std::vector<std::int32_t> number(place(last) + 1, 0);
    std::int32_t count = 0;
    bool has_ended = true;
    for (std::size_t section = 0; section < number.size(); ++section) {
        has_ended = has_ended || ends[section] != 0;
        if (begins[section] != 0 && has_ended) {
            ++count;
            has_ended = false;
        }
        number[section] = count;
    }
    std::vector<Block> found;
    found.reserve(positions.size());
    for (const std::uint32_t each : positions) {
        const Block& block = blocks[each];
        // It lasts through the last section that begins before its end.
        found.push_back({number[place(block.begin)] - 1, number[place(block.end) - 1], block.size,
                         block.lifetime});
    }
    return found;
}

}  // namespace gpuviz::packing
