#include "analysis/overlap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <limits>
#include <queue>
#include <span>

#include "analysis/lanes.hpp"

namespace gpuviz::analysis {

namespace {

struct Edge {
    std::int64_t time;
    std::uint8_t work;
};

// The number of running activities of each kind, and the run times of their combinations.
class Running {
  public:
    explicit Running(RunTimes& times) : times_(times) {}

    void advance(std::int64_t length) noexcept {
        const auto kernels = running_[std::size_t(Work::kernel)];
        const bool copies = running_[std::size_t(Work::copy)] > 0;
        const bool device_copies = running_[std::size_t(Work::device_copy)] > 0;
        const bool others = running_[std::size_t(Work::other)] > 0;
        if (kernels > 0 || copies || device_copies || others) times_.busy += length;
        if (kernels > 0) times_.kernel += length;
        if (kernels > 1) times_.kernel_kernel += length;
        if (copies) times_.copy += length;
        if (device_copies) times_.device_copy += length;
        if (copies && kernels > 0) times_.kernel_copy += length;
    }
    void change(std::uint8_t work, std::int64_t by) noexcept {
        running_[work < running_.size() ? work : std::size_t(Work::other)] += by;
    }

  private:
    RunTimes& times_;
    std::array<std::int64_t, std::size_t(Work::device_copy) + 1> running_{};
};

void add_saturating(std::int64_t& sum, std::int64_t value) noexcept {
    if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

// Whether an activity counts in a window: it overlaps the window, or lies in it if it is empty.
bool touches(Interval activity, Interval window) noexcept {
    if (activity.within(window).length() > 0) return true;
    return activity.length() == 0 && activity.begin >= window.begin && activity.begin <= window.end;
}

// The run times in the window of activities in order of their start; calls `on_gap` with each gap
// and the row that ended it, if any.
template <typename OnGap>
RunTimes run_times(const ActivityRows& activities, std::span<const std::uint32_t> rows,
                   Interval window, OnGap&& on_gap) {
    RunTimes times;
    Running running(times);
    Gaps gaps(window);
    std::int64_t now = window.begin;
    const auto advance_to = [&](std::int64_t time) {
        running.advance(time - now);
        now = time;
    };
    const auto later = [](Edge a, Edge b) { return a.time > b.time; };
    std::priority_queue<Edge, std::vector<Edge>, decltype(later)> ends(later);
    const auto end_next = [&] {
        advance_to(ends.top().time);
        running.change(ends.top().work, -1);
        ends.pop();
    };
    for (const std::uint32_t row : rows) {
        const Interval time = activities.interval(row);
        if (touches(time, window)) ++times.count;
        if (const Interval idle = gaps.before(time); idle.length() > 0) on_gap(idle, {row});
        const Interval part = time.within(window);
        if (part.length() == 0) continue;
        add_saturating(times.sum, part.length());
        while (!ends.empty() && ends.top().time <= part.begin) end_next();
        advance_to(part.begin);
        running.change(activities.work[row], 1);
        ends.push({part.end, activities.work[row]});
    }
    while (!ends.empty()) end_next();
    if (gaps.rest().length() > 0) on_gap(gaps.rest(), {});
    return times;
}

}  // namespace

std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                          const SynchronizationRows& synchronizations,
                          std::optional<std::int64_t> window_begin,
                          std::optional<std::int64_t> window_end) {
    const IdleCauses causes(activities, calls, synchronizations);
    std::vector<Lane> lanes;
    Interval window;
    for (const auto& [device, stream, rows] : causes.lanes()) {
        if (!stream) window = window_of(activities, rows, window_begin, window_end);
        lanes.push_back({device, stream, window, {}, {}});
    }
    std::atomic<std::size_t> next = 0;
    const auto measure = [&] {
        for (std::size_t each = next++; each < lanes.size(); each = next++) {
            Lane& lane = lanes[each];
            const auto& rows = causes.lanes()[each].rows;
            IdleCauses::Place place;
            const auto add = [&](Interval gap, std::optional<std::size_t> ended) {
                causes.add(gap, ended, place, lane.idle);
            };
            lane.times = run_times(activities, rows, lane.window, add);
        }
    };
    auto beside = std::async(std::launch::async, measure);
    measure();
    beside.get();
    return lanes;
}

}  // namespace gpuviz::analysis
