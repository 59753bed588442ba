#include "analysis/overlap.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace gpuviz::analysis {

namespace {

using Rows = std::vector<std::size_t>;

struct Edge {
    std::int64_t time;
    std::uint8_t work;
};

// How many activities of each kind run, and for how long which of them did.
class Running {
  public:
    explicit Running(RunTimes& times) : times_(times) {}

    void advance(std::int64_t length) noexcept {
        const auto kernels = running_[std::size_t(Work::kernel)];
        const bool copies = running_[std::size_t(Work::copy)] > 0;
        if (kernels > 0 || copies || running_[std::size_t(Work::other)] > 0) times_.busy += length;
        if (kernels > 0) times_.kernel += length;
        if (kernels > 1) times_.kernel_kernel += length;
        if (copies) times_.copy += length;
        if (copies && kernels > 0) times_.kernel_copy += length;
    }
    void change(std::uint8_t work, std::int64_t by) noexcept {
        running_[work < running_.size() ? work : std::size_t(Work::other)] += by;
    }

  private:
    RunTimes& times_;
    std::array<std::int64_t, std::size_t(Work::copy) + 1> running_{};
};

void add_saturating(std::int64_t& sum, std::int64_t value) noexcept {
    if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

// Whether an activity counts in a window: it runs there, or without length lies there.
bool touches(Interval activity, Interval window) noexcept {
    if (activity.within(window).length() > 0) return true;
    return activity.length() == 0 && activity.begin >= window.begin && activity.begin <= window.end;
}

Rows in_order_of_time(const ActivityRows& activities) {
    Rows rows(activities.count());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    const auto earlier = [&](std::size_t a, std::size_t b) {
        return activities.interval(a).begin < activities.interval(b).begin;
    };
    if (!std::is_sorted(rows.begin(), rows.end(), earlier)) {
        std::stable_sort(rows.begin(), rows.end(), earlier);
    }
    return rows;
}

// No stream stands for the device, and comes before any.
using LaneKey = std::pair<std::int16_t, std::optional<std::uint32_t>>;

}  // namespace

std::vector<LaneRows> rows_by_lane(const ActivityRows& activities) {
    std::map<LaneKey, Rows> lanes;
    for (const std::size_t row : in_order_of_time(activities)) {
        lanes[{activities.device[row], std::nullopt}].push_back(row);
        lanes[{activities.device[row], activities.stream[row]}].push_back(row);
    }
    std::vector<LaneRows> found;
    for (auto& [key, rows] : lanes) found.push_back({key.first, key.second, std::move(rows)});
    return found;
}

Interval time_of(const ActivityRows& activities, std::span<const std::size_t> rows) {
    Interval whole = activities.interval(rows.front());
    for (const std::size_t row : rows) {
        whole.end = std::max(whole.end, activities.interval(row).end);
    }
    return whole;
}

RunTimes run_times(const ActivityRows& activities, std::span<const std::size_t> rows,
                   Interval window) {
    RunTimes times;
    std::vector<Edge> begins;
    std::vector<Edge> ends;
    begins.reserve(rows.size());
    ends.reserve(rows.size());
    for (const std::size_t row : rows) {
        const Interval whole = activities.interval(row);
        if (touches(whole, window)) ++times.count;
        const Interval part = whole.within(window);
        if (part.length() == 0) continue;
        add_saturating(times.sum, part.length());
        begins.push_back({part.begin, activities.work[row]});
        ends.push_back({part.end, activities.work[row]});
    }
    const auto earlier = [](Edge a, Edge b) { return a.time < b.time; };
    if (!std::is_sorted(ends.begin(), ends.end(), earlier)) {
        std::sort(ends.begin(), ends.end(), earlier);
    }
    Running running(times);
    std::int64_t now = window.begin;
    auto begin = begins.begin();
    for (auto end = ends.begin(); end != ends.end();) {
        const bool begins_now = begin != begins.end() && begin->time <= end->time;
        const Edge edge = begins_now ? *begin++ : *end++;
        running.advance(edge.time - now);
        running.change(edge.work, begins_now ? 1 : -1);
        now = edge.time;
    }
    return times;
}

std::vector<Gap> gaps(const ActivityRows& activities, std::span<const std::size_t> rows,
                      Interval window) {
    std::vector<Gap> found;
    std::int64_t reached = window.begin;
    for (const std::size_t row : rows) {
        const Interval activity = activities.interval(row);
        const Interval idle = Interval{reached, activity.begin}.within(window);
        if (idle.length() > 0) found.push_back({idle, row});
        reached = std::max(reached, activity.end);
    }
    const Interval rest = Interval{reached, window.end}.within(window);
    if (rest.length() > 0) found.push_back({rest, std::nullopt});
    return found;
}

std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                          const SynchronizationRows& synchronizations,
                          std::optional<std::int64_t> window_begin,
                          std::optional<std::int64_t> window_end) {
    const IdleCauses causes(activities, calls, synchronizations);
    std::vector<Lane> lanes;
    Interval window;
    for (const auto& [device, stream, rows] : rows_by_lane(activities)) {
        if (!stream) {
            const Interval whole = time_of(activities, rows);
            window = sound(window_begin.value_or(whole.begin), window_end.value_or(whole.end));
        }
        Lane lane{device, stream, window, run_times(activities, rows, window), {}};
        for (const Gap& gap : gaps(activities, rows, window)) {
            causes.add(gap.time, gap.next, lane.idle);
        }
        lanes.push_back(lane);
    }
    return lanes;
}

}  // namespace gpuviz::analysis
