#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The union of intervals, which tells at once how much of any interval it covers.
class IntervalUnion {
  public:
    IntervalUnion() = default;
    explicit IntervalUnion(std::vector<Interval> intervals) {
        std::sort(intervals.begin(), intervals.end(),
                  [](Interval a, Interval b) { return a.begin < b.begin; });
        for (const Interval each : intervals) {
            if (each.length() == 0) continue;
            if (!parts_.empty() && each.begin <= parts_.back().end) {
                parts_.back().end = std::max(parts_.back().end, each.end);
            } else {
                parts_.push_back(each);
            }
        }
        std::int64_t covered = 0;
        for (const Interval part : parts_) covered_until_.push_back(covered += part.length());
    }

    [[nodiscard]] const std::vector<Interval>& parts() const noexcept { return parts_; }

    // The ns of an interval that are covered.
    [[nodiscard]] std::int64_t covered(Interval interval) const noexcept {
        return interval.length() == 0 ? 0 : before(interval.end) - before(interval.begin);
    }

    // The parts that end after a time, in order.
    [[nodiscard]] std::span<const Interval> after(std::int64_t time) const noexcept {
        const auto first =
            std::upper_bound(parts_.begin(), parts_.end(), time,
                             [](std::int64_t t, Interval part) { return t < part.end; });
        return {first, parts_.end()};
    }
    [[nodiscard]] static std::span<const Interval> none() noexcept { return {}; }

  private:
    [[nodiscard]] std::int64_t before(std::int64_t time) const noexcept {
        const auto next =
            std::upper_bound(parts_.begin(), parts_.end(), time,
                             [](std::int64_t t, Interval part) { return t < part.begin; });
        if (next == parts_.begin()) return 0;
        const Interval last = *std::prev(next);
        const auto row = static_cast<std::size_t>(std::distance(parts_.begin(), next)) - 1;
        return covered_until_[row] - std::max<std::int64_t>(0, last.end - time);
    }

    std::vector<Interval> parts_;
    std::vector<std::int64_t> covered_until_;
};

}  // namespace gpuviz::analysis
