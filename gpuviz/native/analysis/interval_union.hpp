#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The number of rows at the beginning for which `holds`, as std::partition_point finds it; faster
// the closer it is to `near`, from which steps of growing length lead to it.
template <typename Rows, typename Holds>
[[nodiscard]] std::size_t partition_near(const Rows& rows, std::size_t near,
                                         Holds&& holds) noexcept {
    std::size_t low = near;
    std::size_t high = near;
    if (low > 0 && !holds(rows[low - 1])) {
        std::size_t step = 1;
        high = low - 1;
        while (high >= step && !holds(rows[high - step])) {
            high -= step;
            step *= 2;
        }
        low = high >= step ? high - step + 1 : 0;
    } else {
        std::size_t step = 1;
        while (low + step <= rows.size() && holds(rows[low + step - 1])) {
            low += step;
            step *= 2;
        }
        high = std::min(low + step - 1, rows.size());
    }
    const auto place = [&](std::size_t row) {
        return rows.begin() + static_cast<std::ptrdiff_t>(row);
    };
    const auto found = std::partition_point(place(low), place(high), holds);
    return static_cast<std::size_t>(std::distance(rows.begin(), found));
}

// The union of intervals, with fast queries of how much of an interval it covers.
class IntervalUnion {
  public:
    IntervalUnion() = default;
    explicit IntervalUnion(std::vector<Interval> intervals) {
        const auto earlier = [](Interval a, Interval b) { return a.begin < b.begin; };
        if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) {
            std::sort(intervals.begin(), intervals.end(), earlier);
        }
        for (const Interval each : intervals) add(each);
    }

    // Adds an interval that begins no earlier than those before.
    void add(Interval interval) {
        if (interval.length() == 0) return;
        if (parts_.empty() || interval.begin > parts_.back().end) {
            parts_.push_back(interval);
            covered_until_.push_back(covered() + interval.length());
        } else if (interval.end > parts_.back().end) {
            covered_until_.back() += interval.end - parts_.back().end;
            parts_.back().end = interval.end;
        }
    }

    [[nodiscard]] const std::vector<Interval>& parts() const noexcept { return parts_; }

    // The covered part of an interval in ns. A query is faster the closer it is to the previous
    // query with the same cursor, which starts at 0.
    [[nodiscard]] std::int64_t covered(Interval interval, std::size_t& cursor) const noexcept {
        if (interval.length() == 0 || parts_.empty()) return 0;
        const std::int64_t until_begin = before(interval.begin, cursor);
        return before(interval.end, cursor) - until_begin;
    }

    // The parts that end after a time, in order.
    [[nodiscard]] std::span<const Interval> after(std::int64_t time,
                                                  std::size_t& cursor) const noexcept {
        std::size_t first = begun_until(time, cursor);
        if (first > 0 && parts_[first - 1].end > time) --first;
        return std::span(parts_).subspan(first);
    }

  private:
    [[nodiscard]] std::int64_t covered() const noexcept {
        return covered_until_.empty() ? 0 : covered_until_.back();
    }
    [[nodiscard]] std::int64_t before(std::int64_t time, std::size_t& cursor) const noexcept {
        const std::size_t begun = begun_until(time, cursor);
        if (begun == 0) return 0;
        const Interval last = parts_[begun - 1];
        return covered_until_[begun - 1] - std::max<std::int64_t>(0, last.end - time);
    }

    // The number of parts that begin up to a time.
    [[nodiscard]] std::size_t begun_until(std::int64_t time, std::size_t& cursor) const noexcept {
        return cursor = partition_near(parts_, cursor,
                                       [&](Interval part) { return part.begin <= time; });
    }

    std::vector<Interval> parts_;
    std::vector<std::int64_t> covered_until_;
};

}  // namespace gpuviz::analysis
