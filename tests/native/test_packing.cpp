// Packings of any blocks: no two overlap, and bounds and offsets agree.

#include "packing/packing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"

namespace {

using gpuviz::packing::Effort;
using gpuviz::packing::Packing;

struct Blocks {
    std::vector<std::int64_t> begin, end, size;

    void add(std::int64_t from, std::int64_t until, std::int64_t bytes) {
        begin.push_back(from);
        end.push_back(until);
        size.push_back(bytes);
    }
    [[nodiscard]] Packing packed(double seconds) const {
        const auto time = std::chrono::duration<double>(seconds);
        Effort effort(
            Effort::Clock::now() + std::chrono::duration_cast<Effort::Clock::duration>(time),
            [] {});
        return gpuviz::packing::pack(begin, end, size, effort);
    }
};

void check(const Blocks& blocks, const Packing& found) {
    std::int64_t height = 0;
    std::int64_t load = 0;
    for (std::size_t each = 0; each < blocks.size.size(); ++each) {
        height = std::max(height, found.offsets[each] + blocks.size[each]);
        const bool is_in_load =
            blocks.begin[each] <= found.load_time && found.load_time < blocks.end[each];
        load += is_in_load ? blocks.size[each] : 0;
        for (std::size_t other = 0; other < each; ++other) {
            const bool are_together =
                blocks.begin[each] < blocks.end[other] && blocks.begin[other] < blocks.end[each];
            const bool overlap = found.offsets[each] < found.offsets[other] + blocks.size[other] &&
                                 found.offsets[other] < found.offsets[each] + blocks.size[each];
            CHECK_EQUAL(are_together && overlap, false);
        }
    }
    CHECK_EQUAL(found.height, height);
    CHECK_EQUAL(found.load, load);
    CHECK_EQUAL(load <= height, true);
}

Blocks any_blocks(std::mt19937_64& random, std::int64_t count, std::int64_t longest) {
    Blocks blocks;
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
    };
    for (std::int64_t each = 0; each < count; ++each) {
        const std::int64_t begin = below(2 * count);
        blocks.add(begin, begin + 1 + below(longest), 512 * (1 + below(40)));
    }
    return blocks;
}

void check_any_blocks() {
    std::mt19937_64 random(1);
    for (std::int64_t count = 1; count < 60; ++count) {
        const Blocks blocks = any_blocks(random, count, 1 + count / 2);
        check(blocks, blocks.packed(0));
        check(blocks, blocks.packed(0.05));
    }
    const Blocks many = any_blocks(random, 4000, 3000);
    check(many, many.packed(0.5));
}

void check_refused(std::int64_t end, std::int64_t size) {
    Blocks blocks;
    blocks.add(0, end, size);
    bool is_refused = false;
    try {
        static_cast<void>(blocks.packed(0));
    } catch (const std::invalid_argument&) {
        is_refused = true;
    }
    CHECK_EQUAL(is_refused, true);
}

}  // namespace

int main() {
    check_any_blocks();
    check_refused(0, 1);
    check_refused(1, 0);
    check_refused(1, (std::int64_t{1} << 56) + 1);
}
