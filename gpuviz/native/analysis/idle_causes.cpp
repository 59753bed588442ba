#include "analysis/idle_causes.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <limits>
#include <unordered_set>

namespace gpuviz::analysis {

namespace {

std::int64_t& time_of(IdleCause cause, IdleTimes& times) noexcept {
    switch (cause) {
        case IdleCause::host:
            return times.host;
        case IdleCause::dependency:
            return times.dependency;
        case IdleCause::synchronization:
            return times.synchronization;
        case IdleCause::allocation:
            return times.allocation;
        case IdleCause::unrecorded_event:
            return times.unrecorded_event;
        case IdleCause::gpu_busy:
            return times.gpu_busy;
        case IdleCause::unknown:
            break;
    }
    return times.unknown;
}

bool is_blocking(CallKind kind) noexcept {
    return kind == CallKind::synchronize || kind == CallKind::memcpy ||
           kind == CallKind::pageable_memcpy;
}

bool is_host_wait(SynchronizationKind kind) noexcept {
    return kind == SynchronizationKind::event_synchronize ||
           kind == SynchronizationKind::stream_synchronize ||
           kind == SynchronizationKind::context_synchronize;
}

bool is_copy(std::uint8_t work) noexcept {
    return Work(work) == Work::copy || Work(work) == Work::device_copy;
}

// The union of intervals in order of their begin with the parts of another union.
class UnionWith {
  public:
    explicit UnionWith(const IntervalUnion& other) : other_(other.parts()) {}

    void add(Interval interval) {
        add_other_until(interval.begin);
        found_.add(interval);
    }
    [[nodiscard]] IntervalUnion finish() && {
        add_other_until(std::numeric_limits<std::int64_t>::max());
        return std::move(found_);
    }

  private:
    void add_other_until(std::int64_t begin) {
        while (next_ < other_.size() && other_[next_].begin <= begin) found_.add(other_[next_++]);
    }

    std::span<const Interval> other_;
    std::size_t next_ = 0;
    IntervalUnion found_;
};

}  // namespace

void LatestBefore::finish() {
    if (!std::is_sorted(times_.begin(), times_.end())) std::sort(times_.begin(), times_.end());
    for (std::size_t row = 1; row < times_.size(); ++row) {
        times_[row].second = std::max(times_[row].second, times_[row - 1].second);
    }
}

std::optional<std::int64_t> LatestBefore::before(std::uint32_t correlation,
                                                 std::size_t& cursor) const noexcept {
    cursor =
        partition_near(times_, cursor, [&](const auto& each) { return each.first < correlation; });
    if (cursor == 0) return std::nullopt;
    return times_[cursor - 1].second;
}

IdleCauses::IdleCauses(const ActivityRows& activities, const HostCallRows& calls,
                       const SynchronizationRows& synchronizations)
    : activities_(activities), calls_(calls) {
    // The steps wait for memory most of the time, so two threads take half as long.
    auto lanes = std::async(std::launch::async, [&] { return rows_by_lane(activities); });
    call_rows_ = FirstRows<std::uint32_t>(calls.correlation);
    find_blocked_threads(synchronizations);
    lanes_ = lanes.get();
    auto busy = std::async(std::launch::async, [&] { find_busy_times(); });
    find_completions(synchronizations);
    find_launches_after_unrecorded_events();
    busy.get();
}

void IdleCauses::find_blocked_threads(const SynchronizationRows& synchronizations) {
    std::vector<Interval> allocating;
    std::unordered_map<std::uint32_t, std::vector<Interval>> blocked;
    for (std::size_t row = 0; row < calls_.count(); ++row) {
        const auto kind = CallKind(calls_.kind[row]);
        if (kind == CallKind::allocation) allocating.push_back(calls_.interval(row));
        if (is_blocking(kind)) blocked[calls_.thread[row]].push_back(calls_.interval(row));
    }
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        if (!is_host_wait(SynchronizationKind(synchronizations.kind[row]))) continue;
        const auto call = call_rows_.of(synchronizations.correlation[row]);
        if (!call || CallKind(calls_.kind[*call]) == CallKind::query) continue;
        const auto time = sound(synchronizations.time[row], synchronizations.end[row]);
        blocked[calls_.thread[*call]].push_back(time);
    }
    allocations_ = IntervalUnion(std::move(allocating));
    for (auto& [thread, times] : blocked) {
        const auto& also = allocations_.parts();
        times.insert(times.end(), also.begin(), also.end());
        blocked_or_allocating_.emplace(thread, std::move(times));
    }
}

void IdleCauses::find_busy_times() {
    for (std::size_t each = 0; each < lanes_.size(); ++each) {
        // The lane of a device, which is followed by those of its streams.
        const bool has_several = each + 2 < lanes_.size() && lanes_[each + 2].stream;
        if (lanes_[each].stream || !has_several) continue;
        std::array unions{UnionWith(allocations_), UnionWith(allocations_)};
        for (const std::uint32_t row : lanes_[each].rows) {
            unions[is_copy(activities_.work[row])].add(activities_.interval(row));
        }
        auto& found = busy_or_allocating_[lanes_[each].device];
        for (std::size_t kind = 0; kind < unions.size(); ++kind) {
            found[kind] = std::move(unions[kind]).finish();
        }
    }
}

void IdleCauses::find_completions(const SynchronizationRows& synchronizations) {
    const auto& kinds = synchronizations.kind;
    const auto is_wait = [](std::uint8_t kind) {
        return SynchronizationKind(kind) == SynchronizationKind::stream_wait_event;
    };
    if (std::none_of(kinds.begin(), kinds.end(), is_wait)) return;
    std::unordered_map<std::uint64_t, std::int64_t> completed;
    std::unordered_set<std::uint64_t> recorded;
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        if (SynchronizationKind(kinds[row]) != SynchronizationKind::event_record) continue;
        recorded.insert(synchronizations.event_sync_id[row]);
        if (synchronizations.time[row] != 0) {
            completed.emplace(synchronizations.event_sync_id[row],
                              sound(synchronizations.time[row], 0).begin);
        }
    }
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        const auto id = synchronizations.event_sync_id[row];
        if (!is_wait(kinds[row]) || id == 0) continue;
        const auto correlation = synchronizations.correlation[row];
        const auto stream = synchronizations.stream[row];
        if (!recorded.contains(id)) unrecorded_waits_[stream].push_back(correlation);
        const auto found = completed.find(id);
        if (found != completed.end()) completions_[stream].add(correlation, found->second);
    }
    for (auto& [stream, times] : completions_) times.finish();
}

void IdleCauses::find_launches_after_unrecorded_events() {
    if (unrecorded_waits_.empty()) return;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> launches;
    for (const LaneRows& lane : lanes_) {
        if (!lane.stream || !unrecorded_waits_.contains(*lane.stream)) continue;
        for (const std::uint32_t row : lane.rows) {
            const auto correlation = activities_.correlation[row];
            if (correlation != 0) launches[*lane.stream].push_back(correlation);
        }
    }
    for (auto& [stream, calls] : launches) {
        std::sort(calls.begin(), calls.end());
        auto& after = launches_after_unrecorded_[stream];
        for (const std::uint32_t wait : unrecorded_waits_[stream]) {
            const auto next = std::upper_bound(calls.begin(), calls.end(), wait);
            if (next != calls.end()) after.push_back(*next);
        }
        std::sort(after.begin(), after.end());
    }
    unrecorded_waits_.clear();
}

bool IdleCauses::waits_for_unrecorded_event(std::size_t activity, Place& place) const {
    const auto* calls =
        place.unrecorded.of(launches_after_unrecorded_, activities_.stream[activity]);
    return calls != nullptr &&
           std::binary_search(calls->begin(), calls->end(), activities_.correlation[activity]);
}

IdleCauses::Section IdleCauses::launched(Interval time, std::size_t activity, Place& place) const {
    if (waits_for_unrecorded_event(activity, place)) return {time, IdleCause::unrecorded_event};
    const auto* busy = place.devices.of(busy_or_allocating_, activities_.device[activity]);
    if (busy == nullptr) return {time, IdleCause::unknown};
    const auto& competing = (*busy)[is_copy(activities_.work[activity])];
    return {time, IdleCause::unknown, true, &competing, IdleCause::gpu_busy};
}

template <typename Visit>
void IdleCauses::for_each_section(Interval gap, std::optional<std::size_t> activity, Place& place,
                                  Visit&& visit) const {
    const auto add = [&](const Section& section) {
        if (section.time.length() > 0) visit(section);
    };
    const auto call = activity ? call_rows_.of(activities_.correlation[*activity]) : std::nullopt;
    if (!call) {
        add({gap, IdleCause::unknown});
        return;
    }
    const auto launch = calls_.interval(*call);
    Interval waiting{gap.end, gap.end};
    if (const auto* events = place.completions.of(completions_, activities_.stream[*activity])) {
        const auto completed =
            events->before(activities_.correlation[*activity], place.completion.of(events));
        if (completed) waiting = gap.within({launch.begin, *completed});
    }
    if (waiting.length() == 0) waiting = {gap.end, gap.end};
    const auto* blocked = place.threads.of(blocked_or_allocating_, calls_.thread[*call]);
    const auto split = [&](Interval part) {
        constexpr auto limit = std::numeric_limits<std::int64_t>::max();
        if (part.length() == 0) return;
        add({part.within({-limit, launch.begin}), IdleCause::host, true, blocked});
        add({part.within(launch), IdleCause::host});
        const Interval after = part.within({launch.end, limit});
        if (after.length() > 0) add(launched(after, *activity, place));
    };
    split({gap.begin, waiting.begin});
    add({waiting, IdleCause::dependency, false});
    split({waiting.end, gap.end});
}

void IdleCauses::add(Interval gap, std::optional<std::size_t> activity, Place& place,
                     IdleTimes& times) const {
    for_each_section(gap, activity, place,
                     [&](const Section& section) { add_section(section, place, times); });
}

void IdleCauses::add_section(const Section& section, Place& place, IdleTimes& times) const {
    const auto allocation =
        section.may_allocate ? allocations_.covered(section.time, place.allocation) : 0;
    const auto other = section.other == nullptr
                           ? 0
                           : section.other->covered(
                                 section.time, place.of(section.other_cause).of(section.other)) -
                                 allocation;
    times.allocation += allocation;
    time_of(section.other_cause, times) += other;
    time_of(section.cause, times) += section.time.length() - allocation - other;
}

void IdleCauses::append_parts(Interval gap, std::optional<std::size_t> activity, std::size_t most,
                              Place& place, std::vector<IdlePart>& parts) const {
    const std::size_t first = parts.size();
    for_each_section(gap, activity, place, [&](const Section& section) {
        append_section(section, first + most, place, parts, first);
    });
}

void IdleCauses::append_section(const Section& section, std::size_t most_rows, Place& place,
                                std::vector<IdlePart>& parts, std::size_t first) const {
    const auto append = [&](Interval time, IdleCause cause) {
        if (parts.size() > first && parts.back().cause == cause) {
            parts.back().time.end = time.end;
        } else {
            parts.push_back({time, cause});
        }
    };
    std::span<const Interval> allocating;
    std::span<const Interval> other;
    auto now = section.time.begin;
    if (section.may_allocate) allocating = allocations_.after(now, place.allocation);
    if (section.other != nullptr) {
        other = section.other->after(now, place.of(section.other_cause).of(section.other));
    }
    const auto drop_past = [&](std::span<const Interval>& times) {
        while (!times.empty() && times.front().end <= now) times = times.subspan(1);
    };
    while (now < section.time.end && parts.size() < most_rows) {
        drop_past(allocating);
        drop_past(other);
        auto cause = section.cause;
        auto until = section.time.end;
        if (!other.empty()) {
            const bool is_now = other.front().begin <= now;
            if (is_now) cause = section.other_cause;
            until = std::min(until, is_now ? other.front().end : other.front().begin);
        }
        if (!allocating.empty()) {
            const bool is_now = allocating.front().begin <= now;
            if (is_now) cause = IdleCause::allocation;
            until = std::min(until, is_now ? allocating.front().end : allocating.front().begin);
        }
        append({now, until}, cause);
        now = until;
    }
}

}  // namespace gpuviz::analysis
