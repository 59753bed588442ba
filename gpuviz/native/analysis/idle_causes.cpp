#include "analysis/idle_causes.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

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
        case IdleCause::unknown:
            break;
    }
    return times.unknown;
}

}  // namespace

void LatestBefore::finish() {
    std::sort(times_.begin(), times_.end());
    for (std::size_t row = 1; row < times_.size(); ++row) {
        times_[row].second = std::max(times_[row].second, times_[row - 1].second);
    }
}

std::optional<std::int64_t> LatestBefore::before(std::uint32_t correlation) const noexcept {
    const auto next =
        std::lower_bound(times_.begin(), times_.end(), correlation,
                         [](const auto& each, std::uint32_t id) { return each.first < id; });
    if (next == times_.begin()) return std::nullopt;
    return std::prev(next)->second;
}

IdleCauses::IdleCauses(const ActivityRows& activities, const HostCallRows& calls,
                       const SynchronizationRows& synchronizations)
    : activities_(activities), calls_(calls) {
    index_calls();
    find_blocked_threads(synchronizations);
    find_completions(synchronizations);
}

void IdleCauses::index_calls() {
    call_rows_.reserve(calls_.count());
    for (std::size_t row = 0; row < calls_.count(); ++row) {
        if (calls_.correlation[row] != 0) call_rows_.emplace_back(calls_.correlation[row], row);
    }
    if (!std::is_sorted(call_rows_.begin(), call_rows_.end())) {
        std::sort(call_rows_.begin(), call_rows_.end());
    }
}

std::optional<std::size_t> IdleCauses::call_of(std::uint32_t correlation) const noexcept {
    const auto found =
        std::lower_bound(call_rows_.begin(), call_rows_.end(), correlation,
                         [](const auto& each, std::uint32_t id) { return each.first < id; });
    if (found == call_rows_.end() || found->first != correlation) return std::nullopt;
    return found->second;
}

void IdleCauses::find_blocked_threads(const SynchronizationRows& synchronizations) {
    std::vector<Interval> allocating;
    std::unordered_map<std::uint32_t, std::vector<Interval>> blocked;
    for (std::size_t row = 0; row < calls_.count(); ++row) {
        const auto kind = CallKind(calls_.kind[row]);
        if (kind == CallKind::allocation) allocating.push_back(calls_.interval(row));
        if (kind == CallKind::blocking) blocked[calls_.thread[row]].push_back(calls_.interval(row));
    }
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        if (WaitKind(synchronizations.kind[row]) != WaitKind::host_wait) continue;
        const auto call = call_of(synchronizations.correlation[row]);
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

std::unordered_map<std::uint32_t, LatestBefore> IdleCauses::launched_by_stream() const {
    std::unordered_map<std::uint32_t, LatestBefore> launched;
    for (std::size_t row = 0; row < activities_.count(); ++row) {
        const auto correlation = activities_.correlation[row];
        if (correlation == 0) continue;
        launched[activities_.stream[row]].add(correlation, activities_.interval(row).end);
    }
    for (auto& [stream, times] : launched) times.finish();
    return launched;
}

void IdleCauses::find_completions(const SynchronizationRows& synchronizations) {
    const auto& kinds = synchronizations.kind;
    const auto is_wait = [](std::uint8_t kind) { return WaitKind(kind) == WaitKind::stream_wait; };
    if (std::none_of(kinds.begin(), kinds.end(), is_wait)) return;
    const auto launched = launched_by_stream();
    std::unordered_map<std::uint64_t, std::int64_t> completed;
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        if (WaitKind(kinds[row]) != WaitKind::record) continue;
        std::optional<std::int64_t> time;
        if (synchronizations.time[row] != 0) {
            time = sound(synchronizations.time[row], 0).begin;
        } else if (const auto found = launched.find(synchronizations.stream[row]);
                   found != launched.end()) {
            time = found->second.before(synchronizations.correlation[row]);
        }
        if (time) completed.emplace(synchronizations.event_sync_id[row], *time);
    }
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        const auto id = synchronizations.event_sync_id[row];
        const auto found = id == 0 ? completed.end() : completed.find(id);
        if (!is_wait(kinds[row]) || found == completed.end()) continue;
        const auto correlation = synchronizations.correlation[row];
        completions_[synchronizations.stream[row]].add(correlation, found->second);
    }
    for (auto& [stream, times] : completions_) times.finish();
}

IdleCauses::Sections IdleCauses::sections(Interval gap, std::optional<std::size_t> activity) const {
    Sections found{};
    const auto call = activity ? call_of(activities_.correlation[*activity]) : std::nullopt;
    if (!call) {
        found[0] = {gap, IdleCause::unknown};
        return found;
    }
    const auto launch = calls_.interval(*call);
    Interval waiting{gap.end, gap.end};
    if (const auto stream = completions_.find(activities_.stream[*activity]);
        stream != completions_.end()) {
        const auto completed = stream->second.before(activities_.correlation[*activity]);
        if (completed) waiting = gap.within({launch.begin, *completed});
    }
    if (waiting.length() == 0) waiting = {gap.end, gap.end};
    const auto thread = blocked_or_allocating_.find(calls_.thread[*call]);
    const auto* blocked = thread == blocked_or_allocating_.end() ? nullptr : &thread->second;
    std::size_t next = 0;
    const auto split = [&](Interval part) {
        constexpr auto limit = std::numeric_limits<std::int64_t>::max();
        const auto within = [&](std::int64_t begin, std::int64_t end) {
            return part.within({begin, end});
        };
        found[next++] = {within(-limit, launch.begin), IdleCause::host, true, blocked};
        found[next++] = {within(launch.begin, launch.end), IdleCause::host};
        found[next++] = {within(launch.end, limit), IdleCause::unknown};
    };
    split({gap.begin, waiting.begin});
    found[next++] = {waiting, IdleCause::dependency, false};
    split({waiting.end, gap.end});
    return found;
}

void IdleCauses::add(Interval gap, std::optional<std::size_t> activity, IdleTimes& times) const {
    for (const Section& section : sections(gap, activity)) {
        if (section.time.length() > 0) add_section(section, times);
    }
}

void IdleCauses::add_section(const Section& section, IdleTimes& times) const {
    const auto allocation = section.may_allocate ? allocations_.covered(section.time) : 0;
    const auto synchronization =
        section.blocked == nullptr ? 0 : section.blocked->covered(section.time) - allocation;
    times.allocation += allocation;
    times.synchronization += synchronization;
    time_of(section.cause, times) += section.time.length() - allocation - synchronization;
}

void IdleCauses::append_parts(Interval gap, std::optional<std::size_t> activity, std::size_t most,
                              std::vector<IdlePart>& parts) const {
    const std::size_t first = parts.size();
    const auto append = [&](Interval time, IdleCause cause) {
        if (parts.size() > first && parts.back().cause == cause) {
            parts.back().time.end = time.end;
        } else {
            parts.push_back({time, cause});
        }
    };
    for (const Section& section : sections(gap, activity)) {
        auto now = section.time.begin;
        auto allocation = section.may_allocate ? allocations_.after(now) : IntervalUnion::none();
        auto blocked = section.blocked ? section.blocked->after(now) : IntervalUnion::none();
        while (now < section.time.end && parts.size() - first < most) {
            while (!allocation.empty() && allocation.front().end <= now) {
                allocation = allocation.subspan(1);
            }
            while (!blocked.empty() && blocked.front().end <= now) blocked = blocked.subspan(1);
            auto cause = section.cause;
            auto until = section.time.end;
            if (!allocation.empty() && allocation.front().begin <= now) {
                cause = IdleCause::allocation;
                until = std::min(until, allocation.front().end);
            } else {
                if (!allocation.empty()) until = std::min(until, allocation.front().begin);
                if (!blocked.empty() && blocked.front().begin <= now) {
                    cause = IdleCause::synchronization;
                    until = std::min(until, blocked.front().end);
                } else if (!blocked.empty()) {
                    until = std::min(until, blocked.front().begin);
                }
            }
            append({now, until}, cause);
            now = until;
        }
    }
}

}  // namespace gpuviz::analysis
