#include "analysis/first_rows.hpp"

#include <algorithm>
#include <limits>

namespace gpuviz::analysis {
namespace {

// How far an id is after an earlier one, whatever their signs.
template <typename Id>
std::size_t distance(Id first, Id id) noexcept {
    return static_cast<std::size_t>(id) - static_cast<std::size_t>(first);
}

}  // namespace

template <typename Id>
FirstRows<Id>::FirstRows(std::span<const Id> ids) {
    constexpr std::size_t sparse = 4;
    Id highest = std::numeric_limits<Id>::min();
    lowest_ = std::numeric_limits<Id>::max();
    for (const Id each : ids) {
        if (each == 0) continue;
        lowest_ = std::min(lowest_, each);
        highest = std::max(highest, each);
    }
    if (highest < lowest_) return;
    if (const std::size_t last = distance(lowest_, highest); last < sparse * ids.size()) {
        dense_.assign(last + 1, none);
        for (std::size_t row = ids.size(); row-- > 0;) {
            if (ids[row] == 0) continue;
            dense_[distance(lowest_, ids[row])] = static_cast<std::uint32_t>(row);
        }
        return;
    }
    for (std::size_t row = 0; row < ids.size(); ++row) {
        if (ids[row] != 0) sorted_.emplace_back(ids[row], static_cast<std::uint32_t>(row));
    }
    if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
}

template <typename Id>
std::optional<std::size_t> FirstRows<Id>::of(Id id) const noexcept {
    const std::uint32_t found = row(id);
    return found == none ? std::nullopt : std::optional<std::size_t>(found);
}

template <typename Id>
std::uint32_t FirstRows<Id>::row(Id id) const noexcept {
    if (!dense_.empty()) {
        const std::size_t place = distance(lowest_, id);
        return place < dense_.size() ? dense_[place] : none;
    }
    const auto found =
        std::lower_bound(sorted_.begin(), sorted_.end(), id,
                         [](const auto& each, Id other) { return each.first < other; });
    return found == sorted_.end() || found->first != id ? none : found->second;
}

template <typename Id>
LongColumn<std::int64_t> first_rows(std::span<const Id> known, std::span<const Id> wanted) {
    const FirstRows<Id> first(known);
    LongColumn<std::int64_t> rows(wanted.size());
    for (std::size_t place = 0; place < wanted.size(); ++place) {
        const std::uint32_t row = first.row(wanted[place]);
        rows[place] = row == first.none ? -1 : std::int64_t{row};
    }
    return rows;
}

template class FirstRows<std::uint32_t>;
template LongColumn<std::int64_t> first_rows(std::span<const std::uint32_t> known,
                                             std::span<const std::uint32_t> wanted);
template LongColumn<std::int64_t> first_rows(std::span<const std::int64_t> known,
                                             std::span<const std::int64_t> wanted);

}  // namespace gpuviz::analysis
