#include "analysis/busy_times.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpuviz::analysis {

namespace {

bool begins_earlier(Interval a, Interval b) { return a.begin < b.begin; }

std::int64_t total_length(std::span<const Interval> parts) {
    std::int64_t length = 0;
    for (const Interval part : parts) length += part.length();
    return length;
}

}  // namespace

void GrowingUnion::add(std::vector<Interval> intervals) {
    for (Interval& each : intervals) {
        if (each.begin >= settled_) continue;
        uncounted_ += std::min(each.end, settled_) - each.begin;
        each = {settled_, std::max(each.end, settled_)};
    }
    std::erase_if(intervals, [](Interval each) { return each.length() == 0; });
    if (intervals.empty()) return;
    if (!std::is_sorted(intervals.begin(), intervals.end(), begins_earlier)) {
        std::sort(intervals.begin(), intervals.end(), begins_earlier);
    }

    const auto grown = std::partition_point(parts_.begin(), parts_.end(), [&](Interval part) {
        return part.end < intervals.front().begin;
    });
    const std::vector<Interval> earlier(grown, parts_.end());
    parts_.erase(grown, parts_.end());
    length_ -= total_length(earlier);

    std::vector<Interval> ordered;
    ordered.reserve(earlier.size() + intervals.size());
    std::merge(earlier.begin(), earlier.end(), intervals.begin(), intervals.end(),
               std::back_inserter(ordered), begins_earlier);
    const std::size_t kept = parts_.size();
    for (const Interval each : ordered) {
        if (parts_.size() > kept && each.begin <= parts_.back().end) {
            parts_.back().end = std::max(parts_.back().end, each.end);
        } else {
            parts_.push_back(each);
        }
    }
    length_ += total_length(std::span(parts_).subspan(kept));
    if (parts_.size() > most_parts_) settle(parts_.size() / 2);
}

void GrowingUnion::settle(std::size_t parts) {
    settled_ = parts_[parts - 1].end;
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(parts));
}

void DeviceBusyTimes::add(const BusyRows& rows, std::int16_t device) {
    std::vector<Interval> all;
    std::vector<Interval> of_kernels;
    std::vector<Interval> of_copies;
    std::vector<Interval> of_either;
    for (std::size_t row = 0; row < rows.time.size(); ++row) {
        if (rows.device[row] != device) continue;
        const Interval each = sound(rows.time[row], rows.end[row]);
        all.push_back(each);
        if (rows.is_kernel[row] != 0) of_kernels.push_back(each);
        if (rows.is_copy[row] != 0) of_copies.push_back(each);
        if (rows.is_kernel[row] != 0 || rows.is_copy[row] != 0) of_either.push_back(each);
        const bool is_first = activities == 0;
        window.begin = is_first ? each.begin : std::min(window.begin, each.begin);
        window.end = is_first ? each.end : std::max(window.end, each.end);
        ++activities;
    }
    any.add(std::move(all));
    kernels.add(std::move(of_kernels));
    copies.add(std::move(of_copies));
    either.add(std::move(of_either));
}

void BusyTimes::add(const BusyRows& rows) {
    std::vector<std::int16_t> found(rows.device.begin(), rows.device.end());
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const std::int16_t device : found) {
        devices_.try_emplace(device, most_parts_).first->second.add(rows, device);
    }
}

}  // namespace gpuviz::analysis
