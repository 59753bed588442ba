#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace gpuviz::formats {

// A value for each row, negative if absent: a number, or a position in a list of texts.
struct TraceArgument {
    std::uint32_t name;  // a position in the list of the arguments' names
    bool is_text;
    std::span<const std::int64_t> values;
};

// Rows of one category, as non-owning columns of equal length. Tracks are positions in a list that
// precedes the rows in the file.
struct TraceRows {
    std::uint32_t category = 0;  // a position in the list of names, as `name` is
    bool contains = false;       // whether these rows may contain others
    bool instant = false;        // `end` is then `time`
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;  // never before `time`
    std::span<const std::uint32_t> track;
    std::span<const std::uint32_t> name;
    std::span<const std::uint64_t> flow;        // ends here; 0: none. Empty: no flows
    std::span<const std::uint64_t> first_flow;  // of `flow_count` flows that start here
    std::span<const std::uint32_t> flow_count;  // empty: no flows
    std::vector<TraceArgument> arguments;

    [[nodiscard]] std::size_t size() const noexcept { return time.size(); }
};

struct TraceCounter {
    std::uint32_t track;
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> value;
};

// Receives the next piece of the file; its exceptions end the writing.
using TraceSink = std::function<void(std::string_view)>;

inline constexpr std::size_t trace_piece_bytes = std::size_t{1} << 20;

}  // namespace gpuviz::formats
