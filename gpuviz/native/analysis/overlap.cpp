#include "analysis/overlap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <iterator>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

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

bool comes_before(const LaneRow& a, const LaneRow& b) noexcept {
    return a.time.begin != b.time.begin ? a.time.begin < b.time.begin : a.row < b.row;
}

// Numbers keys in the order of first occurrence; fast if there are few distinct keys.
class KeyNumbers {
  public:
    std::size_t of(std::uint64_t key) {
        Recent& recent = recent_[key % recent_.size()];
        if (recent.key == key && recent.is_known) return recent.number;
        const auto number = numbers_.try_emplace(key, numbers_.size()).first->second;
        recent = {key, number, true};
        return number;
    }

  private:
    struct Recent {
        std::uint64_t key = 0;
        std::size_t number = 0;
        bool is_known = false;
    };

    std::unordered_map<std::uint64_t, std::size_t> numbers_;
    std::array<Recent, 251> recent_{};
};

std::vector<LaneRows> rows_by_stream(const ActivityRows& activities) {
    KeyNumbers numbers;
    std::vector<LaneRows> streams;
    for (std::size_t row = 0; row < activities.count(); ++row) {
        const auto device = activities.device[row];
        const auto stream = activities.stream[row];
        const auto key = std::uint64_t{static_cast<std::uint16_t>(device)} << 32 | stream;
        const std::size_t number = numbers.of(key);
        if (number == streams.size()) streams.push_back({device, stream, {}});
        streams[number].rows.push_back(
            {activities.interval(row), static_cast<std::uint32_t>(row), activities.work[row]});
    }
    for (auto& [device, stream, rows] : streams) {
        if (!std::is_sorted(rows.begin(), rows.end(), comes_before)) {
            std::sort(rows.begin(), rows.end(), comes_before);
        }
    }
    std::sort(streams.begin(), streams.end(), [](const LaneRows& a, const LaneRows& b) {
        return std::pair(a.device, a.stream) < std::pair(b.device, b.stream);
    });
    return streams;
}

// The rows of one or more lanes as one lane, by pairwise merging.
std::vector<LaneRow> merged(std::span<const LaneRows> lanes) {
    if (lanes.size() == 1) return lanes.front().rows;
    const auto half = lanes.size() / 2;
    const auto first = merged(lanes.first(half));
    const auto second = merged(lanes.subspan(half));
    std::vector<LaneRow> rows;
    rows.reserve(first.size() + second.size());
    std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(rows),
               comes_before);
    return rows;
}

}  // namespace

std::vector<LaneRows> rows_by_lane(const ActivityRows& activities) {
    auto streams = rows_by_stream(activities);
    std::vector<LaneRows> lanes;
    for (auto first = streams.begin(); first != streams.end();) {
        const auto last = std::find_if(first, streams.end(), [&](const LaneRows& each) {
            return each.device != first->device;
        });
        lanes.push_back({first->device, std::nullopt, merged({first, last})});
        std::move(first, last, std::back_inserter(lanes));
        first = last;
    }
    return lanes;
}

Interval time_of(std::span<const LaneRow> rows) {
    Interval whole = rows.front().time;
    for (const LaneRow& each : rows) whole.end = std::max(whole.end, each.time.end);
    return whole;
}

Interval window_of(std::span<const LaneRow> rows, std::optional<std::int64_t> begin,
                   std::optional<std::int64_t> end) {
    const Interval whole = time_of(rows);
    return sound(begin.value_or(whole.begin), end.value_or(whole.end));
}

RunTimes run_times(std::span<const LaneRow> rows, Interval window) {
    RunTimes times;
    Running running(times);
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
    for (const LaneRow& each : rows) {
        if (touches(each.time, window)) ++times.count;
        const Interval part = each.time.within(window);
        if (part.length() == 0) continue;
        add_saturating(times.sum, part.length());
        while (!ends.empty() && ends.top().time <= part.begin) end_next();
        advance_to(part.begin);
        running.change(each.work, 1);
        ends.push({part.end, each.work});
    }
    while (!ends.empty()) end_next();
    return times;
}

std::vector<Lane> overlap(const ActivityRows& activities, const HostCallRows& calls,
                          const SynchronizationRows& synchronizations,
                          std::optional<std::int64_t> window_begin,
                          std::optional<std::int64_t> window_end) {
    // Each half of the work waits for memory most of the time, so two threads take half as long.
    auto grouped = std::async(std::launch::async, [&] { return rows_by_lane(activities); });
    const IdleCauses causes(activities, calls, synchronizations);
    const std::vector<LaneRows> grouped_rows = grouped.get();
    std::vector<Lane> lanes;
    Interval window;
    for (const auto& [device, stream, rows] : grouped_rows) {
        if (!stream) window = window_of(rows, window_begin, window_end);
        lanes.push_back({device, stream, window, {}, {}});
    }
    std::atomic<std::size_t> next = 0;
    const auto measure = [&] {
        for (std::size_t each = next++; each < lanes.size(); each = next++) {
            Lane& lane = lanes[each];
            const std::vector<LaneRow>& rows = grouped_rows[each].rows;
            lane.times = run_times(rows, lane.window);
            IdleCauses::Place place;
            for_each_gap(rows, lane.window, [&](Interval gap, std::optional<std::size_t> ended) {
                causes.add(gap, ended, place, lane.idle);
                return true;
            });
        }
    };
    auto beside = std::async(std::launch::async, measure);
    measure();
    beside.get();
    return lanes;
}

}  // namespace gpuviz::analysis
