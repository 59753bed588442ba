#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/trace_rows.hpp"

namespace gpuviz::formats {

// The texts that rows refer to by position, as JSON strings with quotes.
struct ChromeTexts {
    std::vector<std::string> names;
    std::vector<std::string> argument_names;
    std::vector<std::string> argument_texts;
};

struct ChromeTrack {
    std::uint64_t process;
    std::uint64_t thread;
};

// Writes rows as complete events with their flows, or as instant events, ordered by time. Each is a
// JSON object preceded by a comma and a line break.
void write_chrome_rows(std::span<const TraceRows> tables, std::span<const ChromeTrack> tracks,
                       const ChromeTexts& texts, const TraceSink& sink);

// Writes a counter event for each value; `name` is a JSON string.
void write_chrome_counter(const TraceCounter& counter, ChromeTrack track, const std::string& name,
                          const TraceSink& sink);

}  // namespace gpuviz::formats
