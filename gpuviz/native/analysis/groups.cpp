#include "analysis/groups.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gpuviz::analysis {

namespace {

constexpr auto empty = std::numeric_limits<std::uint32_t>::max();

std::uint64_t mixed(std::uint64_t key) noexcept {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15U;
    key ^= key >> 29;
    key *= 0xbf58476d1ce4e5b9U;
    return key ^ (key >> 32);
}

// Numbers by key, in a hash table with open addressing that is at most half full.
class KeyTable {
  public:
    KeyTable() : slots_(1024, Slot{0, empty}) {}

    std::uint32_t of(std::uint64_t key) {
        if (2 * count_ >= slots_.size()) grow();
        Slot& slot = slot_of(slots_, key);
        if (slot.number == empty) slot = {key, count_++};
        return slot.number;
    }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  private:
    struct Slot {
        std::uint64_t key;
        std::uint32_t number;
    };

    static Slot& slot_of(std::vector<Slot>& slots, std::uint64_t key) noexcept {
        std::size_t place = mixed(key) & (slots.size() - 1);
        while (slots[place].number != empty && slots[place].key != key) {
            place = (place + 1) & (slots.size() - 1);
        }
        return slots[place];
    }
    void grow() {
        std::vector<Slot> larger(4 * slots_.size(), Slot{0, empty});
        for (const Slot& slot : slots_) {
            if (slot.number != empty) slot_of(larger, slot.key) = slot;
        }
        slots_ = std::move(larger);
    }

    std::vector<Slot> slots_;
    std::uint32_t count_ = 0;
};

}  // namespace

Numbering numbered(std::span<const std::uint32_t> high, std::span<const std::uint32_t> low) {
    Numbering found;
    found.numbers.reserve(high.size());
    KeyTable table;
    for (std::size_t row = 0; row < high.size(); ++row) {
        const auto number = table.of(std::uint64_t{high[row]} << 32 | low[row]);
        found.numbers.push_back(number);
        if (number == found.counts.size()) {
            found.first_rows.push_back(static_cast<std::uint32_t>(row));
            found.counts.push_back(0);
        }
        ++found.counts[number];
    }
    return found;
}

GroupTotals group_totals(std::span<const std::uint32_t> group, std::span<const std::int64_t> values,
                         std::size_t groups) {
    GroupTotals found;
    found.count.assign(groups, 0);
    found.sum.assign(groups, 0);
    found.least.assign(groups, std::numeric_limits<std::int64_t>::max());
    found.greatest.assign(groups, std::numeric_limits<std::int64_t>::min());
    for (std::size_t row = 0; row < values.size(); ++row) {
        const std::uint32_t each = group[row];
        const std::int64_t value = values[row];
        ++found.count[each];
        found.sum[each] = static_cast<std::int64_t>(static_cast<std::uint64_t>(found.sum[each]) +
                                                    static_cast<std::uint64_t>(value));
        found.least[each] = std::min(found.least[each], value);
        found.greatest[each] = std::max(found.greatest[each], value);
    }
    for (std::size_t each = 0; each < groups; ++each) {
        if (found.count[each] == 0) found.least[each] = found.greatest[each] = 0;
    }
    return found;
}

std::vector<std::int64_t> group_medians(std::span<const std::uint32_t> group,
                                        std::span<const std::int64_t> values, std::size_t groups) {
    std::vector<std::size_t> ends(groups + 1, 0);
    for (const std::uint32_t each : group) ++ends[each + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    // ends[n] is where group n begins until its values are in place, and then where it ends.
    std::vector<std::int64_t> ordered(values.size());
    for (std::size_t row = 0; row < values.size(); ++row) ordered[ends[group[row]]++] = values[row];
    std::vector<std::int64_t> medians(groups, 0);
    std::size_t begin = 0;
    for (std::size_t each = 0; each < groups; ++each) {
        const std::span<std::int64_t> own(ordered.data() + begin, ends[each] - begin);
        begin = ends[each];
        if (own.empty()) continue;
        const auto upper = own.begin() + static_cast<std::ptrdiff_t>(own.size() / 2);
        std::nth_element(own.begin(), upper, own.end());
        const std::int64_t high = *upper;
        const std::int64_t low = own.size() % 2 == 1 ? high : *std::max_element(own.begin(), upper);
        medians[each] = low + (high - low) / 2;
    }
    return medians;
}

}  // namespace gpuviz::analysis
