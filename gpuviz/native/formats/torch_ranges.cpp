#include "formats/torch_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace gpuviz::formats {

namespace {

constexpr std::int64_t open = -1;

}  // namespace

TorchRanges::TorchRanges(const TorchSnapshot& snapshot, const TorchTimes& times)
    : snapshot_(&snapshot), times_(&times) {
    pair();
    for (std::size_t row = 0; row < names_.size(); ++row) {
        annotated_[names_[row]].emplace_back(starts_[row], row);
    }
    for (auto& [name, rows] : annotated_) std::ranges::sort(rows);
}

void TorchRanges::pair() {
    std::map<std::pair<std::uint32_t, std::int16_t>, std::vector<std::size_t>> opened;
    for (const TorchAnnotation& each : snapshot_->annotations) {
        const std::int64_t time = times_->of(each.time_us);
        auto& waiting = opened[{each.name, each.device}];
        if (each.is_start) {
            waiting.push_back(add(each.name, time, open));
        } else if (!waiting.empty()) {
            const std::size_t row = waiting.back();
            waiting.pop_back();
            ends_[row] = std::max(time, starts_[row]);
        } else {
            add(each.name, 0, time);
        }
    }
}

std::vector<std::uint32_t> TorchRanges::of_events() {
    const TorchEvents& events = snapshot_->events;
    std::vector<std::uint32_t> ranges(events.count(), 0);
    for (std::size_t begin = 0; begin < events.count();) {
        const std::uint32_t name = events.metadata[begin];
        std::size_t end = begin + 1;
        while (end < events.count() && events.metadata[end] == name &&
               events.device[end] == events.device[begin]) {
            ++end;
        }
        if (name != 0) {
            const std::uint32_t range =
                covering(name, times_->events[begin], times_->events[end - 1]);
            std::fill(ranges.begin() + static_cast<std::ptrdiff_t>(begin),
                      ranges.begin() + static_cast<std::ptrdiff_t>(end), range);
        }
        begin = end;
    }
    return ranges;
}

std::size_t TorchRanges::add(std::uint32_t name, std::int64_t start, std::int64_t end) {
    names_.push_back(name);
    starts_.push_back(start);
    ends_.push_back(end);
    return names_.size() - 1;
}

std::uint32_t TorchRanges::covering(std::uint32_t name, std::int64_t start, std::int64_t end) {
    const auto& rows = annotated_[name];
    const auto after =
        std::ranges::upper_bound(rows, start, {}, &std::pair<std::int64_t, std::size_t>::first);
    if (after != rows.begin()) {
        const std::size_t row = std::prev(after)->second;
        if (ends_[row] >= end || ends_[row] == open) return static_cast<std::uint32_t>(row + 1);
    }
    return static_cast<std::uint32_t>(add(name, start, end) + 1);
}

void TorchRanges::append_tables(std::vector<Table>& tables) const {
    std::vector<std::uint32_t> known = names_;
    std::ranges::sort(known);
    const auto rest = std::ranges::unique(known);
    known.erase(rest.begin(), rest.end());
    std::vector<std::uint32_t> names;
    names.reserve(names_.size());
    for (const std::uint32_t name : names_) {
        const auto place = std::ranges::lower_bound(known, name) - known.begin();
        names.push_back(static_cast<std::uint32_t>(place + 1));
    }
    std::vector<std::uint32_t> ids(names_.size());
    std::iota(ids.begin(), ids.end(), 1);
    Table ranges{"ranges", names_.size(), {}};
    ranges.with("id", std::move(ids))
        .with("time", starts_)
        .with("end", ends_)
        .with("name", std::move(names))
        .with_codes("kind", std::vector<record::RangeKind>(names_.size(), record::RangeKind::range),
                    record::range_kind_names)
        .with_all("thread", std::uint32_t{0})
        .with_all("parent", std::uint32_t{0});
    tables.push_back(std::move(ranges));
    Texts texts;
    for (const std::uint32_t name : known) texts.add(snapshot_->texts[name - 1]);
    std::vector<std::uint32_t> numbers(known.size());
    std::iota(numbers.begin(), numbers.end(), 1);
    Table strings{"strings", known.size(), {}};
    strings.with("id", std::move(numbers)).with("text", std::move(texts));
    tables.push_back(std::move(strings));
}

}  // namespace gpuviz::formats
