#include "formats/chrome_events.hpp"

#include <charconv>
#include <cstddef>
#include <string_view>

#include "formats/trace_order.hpp"

namespace gpuviz::formats {

namespace {

class JsonWriter {
  public:
    explicit JsonWriter(const TraceSink& sink) : sink_(sink) {}

    JsonWriter& operator<<(std::string_view text) {
        piece_.append(text);
        return *this;
    }

    template <typename Integer>
    JsonWriter& number(Integer value) {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        piece_.append(digits, end);
        return *this;
    }

    // Nanoseconds as microseconds with three decimals.
    JsonWriter& microseconds(std::int64_t ns) {
        if (ns < 0) piece_.push_back('-');
        const std::uint64_t size =
            ns < 0 ? -static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
        number(size / 1000);
        const auto rest = size % 1000;
        if (rest == 0) return *this;
        const char fraction[] = {'.', static_cast<char>('0' + rest / 100),
                                 static_cast<char>('0' + rest / 10 % 10),
                                 static_cast<char>('0' + rest % 10)};
        piece_.append(fraction, sizeof fraction);
        return *this;
    }

    JsonWriter& begin(std::string_view phase, ChromeTrack track, std::int64_t time) {
        *this << ",\n{\"ph\":\"" << phase << "\",\"pid\":";
        number(track.process) << ",\"tid\":";
        number(track.thread) << ",\"ts\":";
        return microseconds(time);
    }

    void end() {
        piece_.push_back('}');
        if (piece_.size() >= trace_piece_bytes) flush();
    }

    void flush() {
        sink_(piece_);
        piece_.clear();
    }

  private:
    const TraceSink& sink_;
    std::string piece_;
};

void append_arguments(const TraceRows& table, std::size_t row, const ChromeTexts& texts,
                      JsonWriter& json) {
    std::string_view separator = ",\"args\":{";
    for (const TraceArgument& argument : table.arguments) {
        const std::int64_t value = argument.values[row];
        if (value < 0) continue;
        json << separator << texts.argument_names.at(argument.name) << ":";
        if (argument.is_text) {
            json << texts.argument_texts.at(static_cast<std::size_t>(value));
        } else {
            json.number(value);
        }
        separator = ",";
    }
    if (separator == ",") json << "}";
}

void append_flow(std::string_view phase, ChromeTrack track, std::int64_t time, std::uint64_t flow,
                 JsonWriter& json) {
    json.begin(phase, track, time) << ",\"cat\":\"launch\",\"name\":\"launch\",\"id\":";
    json.number(flow);
    if (phase == "f") json << ",\"bp\":\"e\"";
    json.end();
}

void append_flows(const TraceRows& table, std::size_t row, ChromeTrack track, JsonWriter& json) {
    if (!table.flow.empty() && table.flow[row] != 0) {
        append_flow("f", track, table.time[row], table.flow[row], json);
    }
    if (table.flow_count.empty()) return;
    for (std::uint32_t number = 0; number < table.flow_count[row]; ++number) {
        append_flow("s", track, table.time[row], table.first_flow[row] + number, json);
    }
}

}  // namespace

void write_chrome_rows(std::span<const TraceRows> tables, std::span<const ChromeTrack> tracks,
                       const ChromeTexts& texts, const TraceSink& sink) {
    JsonWriter json(sink);
    for (const TraceRow& each : rows_by_time(tables)) {
        const TraceRows& table = tables[each.table];
        const ChromeTrack track = tracks[table.track[each.row]];
        json.begin(table.instant ? "i" : "X", track, each.time);
        if (table.instant) {
            json << ",\"s\":\"t\"";
        } else {
            json << ",\"dur\":";
            json.microseconds(each.end - each.time);
        }
        json << ",\"cat\":" << texts.names.at(table.category)
             << ",\"name\":" << texts.names.at(table.name[each.row]);
        append_arguments(table, each.row, texts, json);
        json.end();
        append_flows(table, each.row, track, json);
    }
    json.flush();
}

void write_chrome_counter(const TraceCounter& counter, ChromeTrack track, const std::string& name,
                          const TraceSink& sink) {
    JsonWriter json(sink);
    for (std::size_t row = 0; row < counter.time.size(); ++row) {
        json.begin("C", track, counter.time[row])
            << ",\"name\":" << name << ",\"args\":{\"bytes\":";
        json.number(counter.value[row]) << "}";
        json.end();
    }
    json.flush();
}

}  // namespace gpuviz::formats
