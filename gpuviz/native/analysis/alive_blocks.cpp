#include "analysis/alive_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "analysis/interval_union.hpp"

namespace gpuviz::analysis {
namespace {

// The blocks of an address, by begin.
struct AtAddress {
    std::vector<std::size_t> blocks;
    std::size_t cursor = 0;
};

std::unordered_map<std::uint64_t, AtAddress> by_address(const BlockRows& blocks) {
    std::unordered_map<std::uint64_t, AtAddress> found;
    for (std::size_t block = 0; block < blocks.address.size(); ++block) {
        found[blocks.address[block]].blocks.push_back(block);
    }
    const auto earlier = [&](std::size_t one, std::size_t other) {
        return blocks.begin[one] < blocks.begin[other];
    };
    for (auto& [address, at] : found) {
        if (!std::is_sorted(at.blocks.begin(), at.blocks.end(), earlier)) {
            std::stable_sort(at.blocks.begin(), at.blocks.end(), earlier);
        }
    }
    return found;
}

}  // namespace

LongColumn<std::int64_t> alive_blocks(const BlockRows& blocks, const AddressTimes& wanted) {
    auto known = by_address(blocks);
    LongColumn<std::int64_t> alive(wanted.time.size(), -1);
    for (std::size_t row = 0; row < alive.size(); ++row) {
        const auto at = known.find(wanted.address[row]);
        if (at == known.end()) continue;
        const std::int64_t time = wanted.time[row];
        auto& [own, cursor] = at->second;
        cursor = partition_near(own, cursor,
                                [&](std::size_t block) { return blocks.begin[block] <= time; });
        if (cursor == 0) continue;
        const std::size_t last = own[cursor - 1];
        if (blocks.end[last] < 0 || blocks.end[last] >= time) {
            alive[row] = static_cast<std::int64_t>(last);
        }
    }
    return alive;
}

}  // namespace gpuviz::analysis
