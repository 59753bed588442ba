#include "analysis/first_rows.hpp"

#include <algorithm>
#include <limits>

namespace gpuviz::analysis {
namespace {

constexpr auto none = std::numeric_limits<std::uint32_t>::max();

}  // namespace

FirstRows::FirstRows(std::span<const std::uint32_t> correlations) {
    constexpr std::size_t sparse = 4;
    std::uint32_t highest = 0;
    lowest_ = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t each : correlations) {
        if (each != 0) lowest_ = std::min(lowest_, each);
        highest = std::max(highest, each);
    }
    if (highest == 0) return;
    const std::size_t range = std::size_t{highest} - lowest_ + 1;
    if (range <= sparse * correlations.size()) {
        dense_.assign(range, none);
        for (std::size_t row = correlations.size(); row-- > 0;) {
            if (correlations[row] == 0) continue;
            dense_[correlations[row] - lowest_] = static_cast<std::uint32_t>(row);
        }
        return;
    }
    for (std::size_t row = 0; row < correlations.size(); ++row) {
        if (correlations[row] != 0) {
            sorted_.emplace_back(correlations[row], static_cast<std::uint32_t>(row));
        }
    }
    if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
}

std::optional<std::size_t> FirstRows::of(std::uint32_t correlation) const noexcept {
    if (!dense_.empty()) {
        if (correlation < lowest_ || correlation - lowest_ >= dense_.size()) return std::nullopt;
        const std::uint32_t row = dense_[correlation - lowest_];
        return row == none ? std::nullopt : std::optional<std::size_t>(row);
    }
    const auto found =
        std::lower_bound(sorted_.begin(), sorted_.end(), correlation,
                         [](const auto& each, std::uint32_t id) { return each.first < id; });
    if (found == sorted_.end() || found->first != correlation) return std::nullopt;
    return found->second;
}

}  // namespace gpuviz::analysis
