#include "formats/torch_manifest.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "formats/json_text.hpp"
#include "formats/utf8.hpp"
#include "state/device_memory.hpp"

namespace gpuviz::formats {

using record::Action;

namespace {

// Of a statistic, as of every number of a manifest.
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;

std::string two_digits(unsigned number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
}

// In ISO 8601, without fractions of a second; empty if unknown.
std::string created(std::int64_t unix_ns) {
    using namespace std::chrono;
    if (unix_ns == 0) return "";
    const sys_seconds time{seconds(unix_ns / 1'000'000'000)};
    const auto day = floor<days>(time);
    const year_month_day date(day);
    const hh_mm_ss clock(time - day);
    return std::to_string(int(date.year())) + "-" + two_digits(unsigned(date.month())) + "-" +
           two_digits(unsigned(date.day())) + "T" +
           two_digits(static_cast<unsigned>(clock.hours().count())) + ":" +
           two_digits(static_cast<unsigned>(clock.minutes().count())) + ":" +
           two_digits(static_cast<unsigned>(clock.seconds().count())) + "+00:00";
}

std::string counted(std::int64_t count, const std::string& thing) {
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// The numbers of segments and blocks that existed before the trace.
std::string existed(const std::vector<TorchRow>& before) {
    const auto count = [&](Action action) {
        return std::ranges::count(before, action, &TorchRow::action);
    };
    const auto blocks = count(Action::alloc);
    const auto segments = std::ssize(before) - blocks - count(Action::free_requested);
    return counted(segments, "segment") + " and " + counted(blocks, "block");
}

std::vector<std::string> notes(const TorchSnapshot& snapshot, const TorchHistory& history,
                               const TorchTimes& times) {
    std::vector<std::string> notes;
    if (snapshot.events.count() == 0) {
        notes.emplace_back(
            "The torch snapshot has no trace, only the state of memory when it was taken.");
    } else if (!history.before.empty()) {
        notes.push_back("The torch snapshot's trace begins in the middle: what existed before (" +
                        existed(history.before) +
                        ") was inferred from later events; its times and call stacks are unknown.");
    }
    if (times.are_missing) {
        notes.emplace_back(
            "The torch snapshot has no times: its events are shown 1 µs apart, in their order.");
    }
    if (times.moved != 0) {
        notes.push_back("Moved in time, because they were earlier than the events before them: " +
                        counted(times.moved, "event") + ".");
    }
    if (history.contradictions != 0) {
        notes.push_back(
            "The torch snapshot's trace is probably incomplete, because parts of it "
            "contradict each other: " +
            counted(history.contradictions, "event") + ".");
    }
    if (!history.after.empty()) {
        notes.push_back(
            "The torch snapshot's trace does not match its segments; added at its end "
            "to match them: " +
            counted(std::ssize(history.after), "event") + ".");
    }
    for (const auto& [what, count] : snapshot.left_out) {
        notes.push_back("Left out of the torch snapshot: " + what + " (" + std::to_string(count) +
                        ").");
    }
    return notes;
}

// torch's ids of the pools, by the numbers that they have here.
std::string pools(const TorchSnapshot& snapshot, const TorchHistory& history) {
    JsonObject pools;
    for (std::size_t pool = 0; pool < snapshot.pools.size(); ++pool) {
        const auto& [first, second] = snapshot.pools[pool];
        if (history.owners[pool] == 0) continue;
        pools.add(std::to_string(history.owners[pool]),
                  "[" + std::to_string(first) + "," + std::to_string(second) + "]");
    }
    return std::move(pools).text();
}

// Free blocks and the requested sizes of their last allocations, which no event contains.
std::string stale_requests(const TorchSnapshot& snapshot) {
    const TorchBlocks& blocks = snapshot.blocks;
    JsonList rows;
    for (std::size_t row = 0; row < blocks.count(); ++row) {
        const bool is_free =
            blocks.state[row] == static_cast<std::uint8_t>(state::BlockState::inactive);
        if (!is_free || blocks.requested_size[row] == 0) continue;
        rows.add("[" + std::to_string(snapshot.segments.device[blocks.segment[row]]) + "," +
                 std::to_string(blocks.address[row]) + "," + std::to_string(blocks.size[row]) +
                 "," + std::to_string(blocks.requested_size[row]) + "]");
    }
    return std::move(rows).text();
}

// The statistics of the recorder, else those that the settings contain.
std::string memory_stats(const TorchSnapshot& snapshot, const TorchHistory& history) {
    if (!snapshot.recorder.memory_stats.empty()) return snapshot.recorder.memory_stats;
    const auto limit = snapshot.settings.max_split_size;
    if (!limit || *limit >= most_bytes) return "{}";
    std::set<std::int16_t> devices(snapshot.events.device.begin(), snapshot.events.device.end());
    for (const TorchRow& row : history.before) devices.insert(row.device);
    JsonObject statistics;
    for (const std::int16_t device : devices) {
        JsonObject values;
        values.add("max_split_size", std::to_string(*limit));
        statistics.add(std::to_string(device), std::move(values).text());
    }
    return std::move(statistics).text();
}

std::string own_part(const TorchSnapshot& snapshot, const TorchHistory& history) {
    JsonObject part;
    part.add("allocator_settings", snapshot.settings.json);
    part.add("pools", pools(snapshot, history));
    part.add("stale_requests", stale_requests(snapshot));
    return std::move(part).text();
}

}  // namespace

std::string torch_manifest(const TorchSnapshot& snapshot, const TorchHistory& history,
                           const TorchTimes& times) {
    const TorchRecorder& recorder = snapshot.recorder;
    const std::size_t rows = history.before.size() + snapshot.events.count() + history.after.size();
    JsonObject manifest;
    manifest.add("format", json_text("gpuviz"));
    manifest.add("version", "1");
    manifest.add("created", json_text(created(times.start_unix_ns)));
    manifest.add("start_unix_ns", std::to_string(times.start_unix_ns));
    manifest.add("duration_ns", std::to_string(times.end));
    manifest.add("events", std::to_string(rows));
    manifest.add("initial_events", std::to_string(history.before.size()));
    manifest.add("settings", json_text(snapshot.settings.configuration));
    manifest.add("simulated", recorder.simulated ? "true" : "false");
    manifest.add("memory_stats", memory_stats(snapshot, history));
    manifest.add("notes", json_texts(notes(snapshot, history, times)));
    manifest.add("allocator", json_text("observe"));
    manifest.add("allocator_name", json_text("PyTorch's caching allocator"));
    for (const auto& [name, text] : recorder.texts) manifest.add(name, json_text(text));
    if (recorder.program) manifest.add("program", json_texts(*recorder.program));
    manifest.add(manifest_key, own_part(snapshot, history));
    return valid_utf8(std::move(manifest).text());
}

}  // namespace gpuviz::formats
