#include "analysis/event_times.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/first_rows.hpp"

namespace gpuviz::analysis {
namespace {

enum class StepKind : std::uint8_t { activity, wait, record };

// What a call gave to a stream.
struct Step {
    std::uint32_t correlation;
    StepKind kind;
    std::uint32_t row;

    [[nodiscard]] auto place() const noexcept { return std::tuple(correlation, kind, row); }
};

std::vector<Step> steps_of(const ActivityRows& activities,
                           const SynchronizationRows& synchronizations) {
    std::unordered_set<std::uint32_t> streams;  // with records or waits; others order nothing
    std::vector<Step> steps;
    for (std::size_t row = 0; row < synchronizations.count(); ++row) {
        const auto kind = SynchronizationKind(synchronizations.kind[row]);
        const bool is_record = kind == SynchronizationKind::event_record;
        const bool is_ordering = is_record || kind == SynchronizationKind::stream_wait_event;
        if (!is_ordering || synchronizations.correlation[row] == 0) continue;
        streams.insert(synchronizations.stream[row]);
        steps.push_back({synchronizations.correlation[row],
                         is_record ? StepKind::record : StepKind::wait, std::uint32_t(row)});
    }
    for (std::size_t row = 0; row < activities.count(); ++row) {
        if (activities.correlation[row] != 0 && streams.contains(activities.stream[row])) {
            steps.push_back({activities.correlation[row], StepKind::activity, std::uint32_t(row)});
        }
    }
    std::sort(steps.begin(), steps.end(),
              [](const Step& left, const Step& right) { return left.place() < right.place(); });
    return steps;
}

void raise(std::unordered_map<std::uint32_t, std::int64_t>& times, std::uint32_t stream,
           std::int64_t time) {
    auto& known = times.try_emplace(stream, time).first->second;
    known = std::max(known, time);
}

}  // namespace

std::vector<std::int64_t> event_times(const ActivityRows& activities, const HostCallRows& calls,
                                      const SynchronizationRows& synchronizations) {
    std::vector<std::int64_t> times(synchronizations.time.begin(), synchronizations.time.end());
    const auto is_unknown = [&](std::size_t row) {
        return SynchronizationKind(synchronizations.kind[row]) ==
                   SynchronizationKind::event_record &&
               times[row] == 0;
    };
    bool has_unknown = false;
    bool has_waits = false;
    for (std::size_t row = 0; row < times.size(); ++row) {
        has_unknown |= is_unknown(row);
        has_waits |= SynchronizationKind(synchronizations.kind[row]) ==
                     SynchronizationKind::stream_wait_event;
    }
    if (!has_unknown || !has_waits) return times;  // then nobody asks
    const FirstRows<std::uint32_t> call_rows(calls.correlation);
    std::unordered_map<std::uint32_t, std::int64_t> done;     // by stream
    std::unordered_map<std::uint64_t, std::int64_t> reached;  // by sync id
    for (const Step& step : steps_of(activities, synchronizations)) {
        if (step.kind == StepKind::activity) {
            raise(done, activities.stream[step.row], activities.interval(step.row).end);
            continue;
        }
        const std::uint32_t stream = synchronizations.stream[step.row];
        const std::uint64_t sync_id = synchronizations.event_sync_id[step.row];
        if (step.kind == StepKind::wait) {
            const auto found = sync_id == 0 ? reached.end() : reached.find(sync_id);
            if (found != reached.end()) raise(done, stream, found->second);
            continue;
        }
        if (is_unknown(step.row)) {
            const auto before = done.find(stream);
            if (before != done.end()) times[step.row] = before->second;
            if (const auto call = call_rows.of(step.correlation)) {
                const auto began = calls.interval(*call).begin;
                times[step.row] = before == done.end() ? began : std::max(before->second, began);
            }
        }
        if (times[step.row] != 0) reached.try_emplace(sync_id, times[step.row]);
    }
    return times;
}

}  // namespace gpuviz::analysis
