#include "analysis/groups.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <limits>
#include <numeric>
#include <utility>

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

    static Slot& slot_of(LongColumn<Slot>& slots, std::uint64_t key) noexcept {
        std::size_t place = mixed(key) & (slots.size() - 1);
        while (slots[place].number != empty && slots[place].key != key) {
            place = (place + 1) & (slots.size() - 1);
        }
        return slots[place];
    }
    void grow() {
        LongColumn<Slot> larger(4 * slots_.size(), Slot{0, empty});
        for (const Slot& slot : slots_) {
            if (slot.number != empty) slot_of(larger, slot.key) = slot;
        }
        slots_ = std::move(larger);
    }

    LongColumn<Slot> slots_;
    std::uint32_t count_ = 0;
};

using Key = std::array<std::uint32_t, 4>;

struct KeyedRow {
    Key key;
    std::uint32_t row;
};

// Rows with equal keys are in the same part, whose hash table fits into a core's cache.
constexpr std::size_t parts = 256;

std::uint8_t part_of(std::uint64_t hash) noexcept { return static_cast<std::uint8_t>(hash >> 56); }

std::uint64_t hash_of(const Key& key) noexcept {
    const auto first = mixed(std::uint64_t{key[0]} << 32 | key[1]);
    return mixed(first ^ (std::uint64_t{key[2]} << 32 | key[3]));
}

// The rows of each part in ascending order, one part after the other.
class PartedRows {
  public:
    explicit PartedRows(const KeyColumns& columns) : columns_(columns), rows_(columns[0].size()) {
        std::array<std::array<std::size_t, parts>, halves> next{};
        of_each_half([&](std::size_t half) {
            for (std::size_t row = begin(half); row < begin(half + 1); ++row) {
                ++next[half][part_of(hash_of(key(row)))];
            }
        });
        std::size_t place = 0;
        for (std::size_t part = 0; part < parts; ++part) {
            ends_[part] = place;
            for (auto& of_half : next) {
                ends_[part] += of_half[part];
                of_half[part] = std::exchange(place, place + of_half[part]);
            }
        }
        of_each_half([&](std::size_t half) {
            for (std::size_t row = begin(half); row < begin(half + 1); ++row) {
                const Key own = key(row);
                const std::size_t own_place = next[half][part_of(hash_of(own))]++;
                rows_[own_place] = {own, static_cast<std::uint32_t>(row)};
            }
        });
    }

    [[nodiscard]] std::span<const KeyedRow> part(std::size_t number) const noexcept {
        const std::size_t first = number == 0 ? 0 : ends_[number - 1];
        return std::span(rows_).subspan(first, ends_[number] - first);
    }

    static constexpr std::size_t halves = 2;

    template <typename Work>
    static void of_each_half(const Work& work) {
        auto beside = std::async(std::launch::async, work, std::size_t{1});
        work(std::size_t{0});
        beside.get();
    }

  private:
    [[nodiscard]] Key key(std::size_t row) const noexcept {
        return {columns_[0][row], columns_[1][row], columns_[2][row], columns_[3][row]};
    }
    [[nodiscard]] std::size_t begin(std::size_t half) const noexcept {
        return half * rows_.size() / halves;
    }

    const KeyColumns& columns_;
    std::vector<KeyedRow> rows_;
    std::array<std::size_t, parts> ends_{};
};

// The most frequent combination of a group so far.
struct Typical {
    std::uint32_t count = 0;
    std::uint32_t row = 0;

    void consider(const Typical& other) noexcept {
        if (other.count > count || (other.count == count && other.row < row)) *this = other;
    }
};

// Counts the combinations of a part and considers each for its group.
class CombinationCounter {
  public:
    void count(std::span<const KeyedRow> rows, std::vector<Typical>& of_groups) {
        std::size_t size = 16;
        while (size < 2 * rows.size()) size *= 2;
        slots_.assign(size, empty);
        found_.clear();
        for (std::size_t each = 0; each < rows.size(); ++each) ++found_[found(rows, each)].count;
        for (const Typical& one : found_) {
            const KeyedRow& first = rows[one.row];
            of_groups[first.key[0]].consider({one.count, first.row});
        }
    }

  private:
    // The position in found_ of a row's combination, whose first row is in `rows`.
    std::uint32_t found(std::span<const KeyedRow> rows, std::size_t each) {
        const Key& key = rows[each].key;
        for (std::size_t place = hash_of(key);; ++place) {
            std::uint32_t& slot = slots_[place & (slots_.size() - 1)];
            if (slot == empty) {
                slot = static_cast<std::uint32_t>(found_.size());
                found_.push_back({0, static_cast<std::uint32_t>(each)});
            }
            if (rows[found_[slot].row].key == key) return slot;
        }
    }

    std::vector<std::uint32_t> slots_;
    std::vector<Typical> found_;
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

std::vector<std::int64_t> typical_rows(const KeyColumns& columns, std::size_t groups) {
    const PartedRows rows(columns);
    std::array<std::vector<Typical>, PartedRows::halves> found;
    std::atomic<std::size_t> next = 0;
    PartedRows::of_each_half([&](std::size_t half) {
        found[half].resize(groups);
        CombinationCounter counter;
        for (std::size_t part = next++; part < parts; part = next++) {
            counter.count(rows.part(part), found[half]);
        }
    });
    std::vector<std::int64_t> typical(groups);
    for (std::size_t group = 0; group < groups; ++group) {
        found[0][group].consider(found[1][group]);
        typical[group] = found[0][group].row;
    }
    return typical;
}

}  // namespace gpuviz::analysis
