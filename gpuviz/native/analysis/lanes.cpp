#include "analysis/lanes.hpp"

#include <array>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace gpuviz::analysis {

namespace {

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

// Orders rows by the start of their activities.
auto by_start(const ActivityRows& activities) {
    return [&activities](std::uint32_t a, std::uint32_t b) {
        const auto first = activities.interval(a).begin;
        const auto second = activities.interval(b).begin;
        return first != second ? first < second : a < b;
    };
}

std::vector<LaneRows> rows_by_stream(const ActivityRows& activities) {
    KeyNumbers numbers;
    std::vector<LaneRows> streams;
    std::vector<std::size_t> counts;
    const auto number_of = [&](std::size_t row) {
        const auto device = static_cast<std::uint16_t>(activities.device[row]);
        return numbers.of(std::uint64_t{device} << 32 | activities.stream[row]);
    };
    for (std::size_t row = 0; row < activities.count(); ++row) {
        const std::size_t number = number_of(row);
        if (number == streams.size()) {
            streams.push_back({activities.device[row], activities.stream[row], {}});
            counts.push_back(0);
        }
        ++counts[number];
    }
    for (std::size_t each = 0; each < streams.size(); ++each) {
        streams[each].rows.reserve(counts[each]);
    }
    for (std::size_t row = 0; row < activities.count(); ++row) {
        streams[number_of(row)].rows.push_back(static_cast<std::uint32_t>(row));
    }
    const auto earlier = by_start(activities);
    for (auto& [device, stream, rows] : streams) {
        if (!std::is_sorted(rows.begin(), rows.end(), earlier)) {
            std::sort(rows.begin(), rows.end(), earlier);
        }
    }
    std::sort(streams.begin(), streams.end(), [](const LaneRows& a, const LaneRows& b) {
        return std::pair(a.device, a.stream) < std::pair(b.device, b.stream);
    });
    return streams;
}

// The rows of one or more lanes as one lane, by pairwise merging.
std::vector<std::uint32_t> merged(const ActivityRows& activities, std::span<const LaneRows> lanes) {
    if (lanes.size() == 1) return lanes.front().rows;
    const auto half = lanes.size() / 2;
    const auto first = merged(activities, lanes.first(half));
    const auto second = merged(activities, lanes.subspan(half));
    std::vector<std::uint32_t> rows;
    rows.reserve(first.size() + second.size());
    std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(rows),
               by_start(activities));
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
        lanes.push_back({first->device, std::nullopt, merged(activities, {first, last})});
        std::move(first, last, std::back_inserter(lanes));
        first = last;
    }
    return lanes;
}

Interval window_of(const ActivityRows& activities, std::span<const std::uint32_t> rows,
                   std::optional<std::int64_t> begin, std::optional<std::int64_t> end) {
    Interval whole = activities.interval(rows.front());
    for (const std::uint32_t row : rows) {
        whole.end = std::max(whole.end, activities.interval(row).end);
    }
    return sound(begin.value_or(whole.begin), end.value_or(whole.end));
}

}  // namespace gpuviz::analysis
