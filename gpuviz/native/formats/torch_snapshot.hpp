#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_source.hpp"
#include "formats/torch_settings.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::formats {

// The content of a file of torch.cuda.memory._snapshot() in columns. Texts, stacks, frames and
// pools are positions + 1 in their own columns; 0 means none.

enum class SegmentKind : std::uint8_t { small, large, unknown };

struct TorchEvents {
    std::vector<record::Action> action;
    std::vector<std::int16_t> device;
    std::vector<std::uint64_t> address;    // of oom: free bytes of the device
    std::vector<std::int64_t> size;        // as in the file: the requested size, or the segment's
    std::vector<std::int64_t> block_size;  // 0 if missing
    std::vector<std::uint64_t> stream;     // raw handle
    std::vector<std::int64_t> time_us;     // since 1970; 0 if missing
    std::vector<std::uint32_t> pool;
    std::vector<SegmentKind> kind;  // unknown if missing
    std::vector<std::uint32_t> stack;
    std::vector<std::uint32_t> metadata;  // a text

    [[nodiscard]] std::size_t count() const noexcept { return action.size(); }
    void reserve(std::size_t count);
};

struct TorchSegments {
    std::vector<std::int16_t> device;
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::uint64_t> stream;
    std::vector<std::uint32_t> pool;
    std::vector<std::uint8_t> kind;  // SegmentKind
    std::vector<std::uint8_t> is_expandable;
    std::vector<std::uint32_t> stack;

    [[nodiscard]] std::size_t count() const noexcept { return address.size(); }
};

struct TorchBlocks {
    std::vector<std::uint32_t> segment;  // row of TorchSegments
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> requested_size;
    std::vector<std::uint8_t> state;  // state::BlockState
    std::vector<std::uint32_t> stack;

    [[nodiscard]] std::size_t count() const noexcept { return address.size(); }
};

struct TorchFrames {
    std::vector<std::uint32_t> name;      // a text
    std::vector<std::uint32_t> filename;  // a text
    std::vector<std::int32_t> line;
};

struct TorchStacks {
    std::vector<std::int32_t> first{0};  // of stack n: frames[first[n - 1] .. first[n])
    std::vector<std::uint32_t> frames;   // innermost first
};

// A start or an end of a named range.
struct TorchAnnotation {
    std::uint32_t name;  // a text
    bool is_start;
    std::int16_t device;
    std::int64_t time_us;
};

struct TorchSnapshot {
    TorchEvents events;  // device by device, each in the order in which they happened
    TorchSegments segments;
    TorchBlocks blocks;  // in the order of their segments and addresses
    TorchFrames frames;
    TorchStacks stacks;
    std::vector<std::pair<std::int64_t, std::int64_t>> pools;  // torch's MempoolId_t
    std::vector<std::string> texts;                            // UTF-8
    std::vector<TorchAnnotation> annotations;
    TorchSettings settings;
    TorchRecorder recorder;
    std::vector<std::pair<std::string, std::int64_t>> left_out;  // what was ignored, with counts
};

// Reads a snapshot's pickle; `memory_limit` bounds its values, in bytes.
// Throws FormatError that names the part, std::system_error if the file cannot be read.
[[nodiscard]] TorchSnapshot read_torch_snapshot(ByteSource source, std::uint64_t memory_limit);

}  // namespace gpuviz::formats
