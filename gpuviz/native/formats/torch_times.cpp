#include "formats/torch_times.hpp"

#include <limits>
#include <string>

#include "formats/format_error.hpp"

namespace gpuviz::formats {

namespace {

constexpr std::int64_t ns_per_us = 1000;

struct Bounds {
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();  // of those that are known
    std::int64_t latest = 0;

    void add(std::int64_t time_us) noexcept {
        if (time_us > 0) earliest = std::min(earliest, time_us);
        latest = std::max(latest, time_us);
    }
};

// Events without times keep their order.
TorchTimes ordinal_times(const TorchEvents& events) {
    TorchTimes times;
    times.are_missing = true;
    times.events.reserve(events.count());
    std::int64_t next = 0;
    for (std::size_t row = 0; row < events.count(); ++row) {
        if (row > 0 && events.device[row] != events.device[row - 1]) next = 0;
        times.events.push_back(next);
        times.end = std::max(times.end, next);
        next += ns_per_us;
    }
    return times;
}

}  // namespace

TorchTimes torch_times(const TorchSnapshot& snapshot) {
    const TorchEvents& events = snapshot.events;
    Bounds of_events;
    for (const std::int64_t time_us : events.time_us) of_events.add(time_us);
    Bounds of_all = of_events;
    for (const TorchAnnotation& each : snapshot.annotations) of_all.add(each.time_us);
    if (of_all.latest > latest_us) {
        throw FormatError("device_traces", "a time is " + std::to_string(of_all.latest) +
                                               " µs after 1970, expected at most " +
                                               std::to_string(latest_us));
    }
    const auto start = snapshot.recorder.start_unix_ns;
    if (!start && events.count() > 0 && of_events.latest == 0) return ordinal_times(events);
    TorchTimes times;
    times.start_unix_ns = start.value_or(of_all.latest == 0 ? 0 : of_all.earliest * ns_per_us);
    times.events.reserve(events.count());
    std::int64_t last = 0;
    for (std::size_t row = 0; row < events.count(); ++row) {
        const std::int64_t time = times.of(events.time_us[row]);
        if (row > 0 && events.device[row] != events.device[row - 1]) last = 0;
        if (time < last) ++times.moved;
        last = std::max(last, time);
        times.events.push_back(last);
        times.end = std::max(times.end, last);
    }
    for (const TorchAnnotation& each : snapshot.annotations) {
        times.end = std::max(times.end, times.of(each.time_us));
    }
    return times;
}

}  // namespace gpuviz::formats
