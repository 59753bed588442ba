#include "packing/sections.hpp"

#include <algorithm>
#include <numeric>

namespace gpuviz::packing {

namespace {

Positions by_value(std::span<const std::int64_t> values) {
    Positions order(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t each) { return values[each]; });
    return order;
}

}  // namespace

Sections sections(std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                  std::span<const std::int64_t> size) {
    const Positions begins = by_value(begin);
    const Positions ends = by_value(end);
    Sections found;
    found.blocks.resize(size.size());
    std::int64_t load = 0;
    std::int32_t count = 0;
    std::size_t ended = 0;
    for (const std::uint32_t each : begins) {
        bool is_new = count == 0;
        for (; ended < ends.size() && end[ends[ended]] <= begin[each]; ++ended) {
            load -= size[ends[ended]];
            found.blocks[ends[ended]].end = count;
            is_new = true;
        }
        if (is_new) {
            ++count;
            found.times.push_back(0);
            found.loads.push_back(0);
        }
        load += size[each];
        found.times.back() = begin[each];
        found.loads.back() = load;
        found.blocks[each].begin = count - 1;
        found.blocks[each].size = size[each];
        found.blocks[each].lifetime = end[each] - begin[each];
    }
    for (; ended < ends.size(); ++ended) found.blocks[ends[ended]].end = count;
    return found;
}

}  // namespace gpuviz::packing
