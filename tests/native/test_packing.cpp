// Packings of any blocks: no two overlap, and bounds and offsets agree.

#include "packing/packing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "packing/placement.hpp"
#include "packing/reduction.hpp"
#include "packing/search.hpp"
#include "packing/time_search.hpp"

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
        return gpuviz::packing::pack(begin, end, size, 1, effort);
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
    CHECK_EQUAL(found.upper_bound, height);
    CHECK_EQUAL(found.load, load);
    CHECK_EQUAL(found.load <= found.lower_bound && found.lower_bound <= height, true);
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
    // Too many links to be searched, at least at first.
    const Blocks many = any_blocks(random, 4000, 3000);
    check(many, many.packed(0.5));
}

// Four bytes are used at any time, but the two free at the end are not next to each other.
void check_a_bound_above_the_load() {
    Blocks blocks;
    blocks.add(0, 1, 2);
    blocks.add(0, 2, 2);
    blocks.add(1, 3, 1);
    blocks.add(1, 4, 1);
    blocks.add(2, 3, 1);
    blocks.add(2, 4, 1);
    blocks.add(3, 5, 2);
    blocks.add(4, 5, 2);
    const Packing found = blocks.packed(60);
    check(blocks, found);
    CHECK_EQUAL(found.load, 4);
    CHECK_EQUAL(found.lower_bound, 5);
    CHECK_EQUAL(found.upper_bound, 5);
}

// Whether blocks fit, found over time and by offsets. True: they fit.
bool check_time_search(const std::vector<gpuviz::packing::Block>& blocks, std::int64_t capacity) {
    using gpuviz::packing::Answer;
    const auto most = std::numeric_limits<std::size_t>::max();
    Effort effort(Effort::Clock::now() + std::chrono::minutes(1), [] {});
    gpuviz::packing::Positions rank(blocks.size());
    std::iota(rank.begin(), rank.end(), 0U);
    const Answer expected = gpuviz::packing::Search(blocks, capacity).run(rank, most, effort);
    gpuviz::packing::TimeSearch search(blocks, capacity);
    CHECK_EQUAL(search.run(0, effort) == Answer::unknown, true);
    Answer found = Answer::unknown;
    // Each run continues with what those before it know.
    for (std::size_t placed = 10; found == Answer::unknown && placed < 1'000'000; placed *= 2) {
        found = search.run(placed, effort);
    }
    CHECK_EQUAL(found == expected, true);
    if (found != Answer::fits) return false;
    CHECK_EQUAL(gpuviz::packing::checked_height(blocks, search.offsets()) <= capacity, true);
    return true;
}

void check_time_searches() {
    std::mt19937_64 random(2);
    int refuted = 0;
    const auto below = [&](std::uint64_t bound) {
        return static_cast<std::int64_t>(random() % bound);
    };
    for (int round = 0; round < 4000; ++round) {
        std::vector<gpuviz::packing::Block> any;
        const std::int64_t count = 4 + below(6);
        for (std::int64_t each = 0; each < count; ++each) {
            const auto begin = static_cast<std::int32_t>(below(8));
            const auto end = static_cast<std::int32_t>(begin + 1 + below(5));
            any.push_back({begin, end, 1 + below(5), 1});
        }
        if (round % 2 == 1) {
            // Like those of check_a_bound_above_the_load, of which many do not fit.
            const std::int64_t factor = 1 + below(3);
            any = {{0, 1, 2, 1}, {0, 2, 2, 1}, {1, 3, 1, 1}, {1, 4, 1, 1},
                   {2, 3, 1, 1}, {2, 4, 1, 1}, {3, 5, 2, 1}, {4, 5, 2, 1}};
            for (auto& each : any) {
                each.size *= factor;
                if (below(10) == 0) ++each.size;
                if (below(10) == 0) ++each.end;
            }
        }
        gpuviz::packing::Positions all(any.size());
        std::iota(all.begin(), all.end(), 0U);
        const std::vector<gpuviz::packing::Block> blocks = gpuviz::packing::chosen(any, all);
        std::int64_t load = 0;
        for (std::int32_t section = 0; section < 8; ++section) {
            std::int64_t bytes = 0;
            for (const auto& each : blocks) {
                if (each.begin <= section && section < each.end) bytes += each.size;
            }
            load = std::max(load, bytes);
        }
        refuted += check_time_search(blocks, load) ? 0 : 1;
        refuted += check_time_search(blocks, load + 1) ? 0 : 1;
    }
    // Both answers were compared.
    CHECK_EQUAL(refuted > 10 && refuted < 4000, true);
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
    check_a_bound_above_the_load();
    check_time_searches();
    check_refused(0, 1);
    check_refused(1, 0);
    check_refused(1, (std::int64_t{1} << 56) + 1);
}
