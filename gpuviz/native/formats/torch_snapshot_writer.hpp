#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/pickle_writer.hpp"

namespace gpuviz::formats {

// The columns of a snapshot. Texts, frames and stacks are numbered from 1; 0 means none.
struct SnapshotToWrite {
    struct Events {
        std::vector<std::size_t> devices;     // number of rows of each device, in order
        std::span<const std::int8_t> action;  // Action
        std::span<const std::uint64_t> address;
        std::span<const std::int64_t> size;
        std::span<const std::int64_t> block_size;  // written if not 0
        std::span<const std::uint64_t> stream;     // raw handle
        std::span<const std::int64_t> time_us;
        std::span<const std::uint32_t> pool;  // position in `pools`
        std::span<const std::uint32_t> stack;
        std::span<const std::uint32_t> metadata;      // a text
        std::span<const std::uint8_t> kind;           // SegmentKind; unknown is not written
        std::span<const std::uint8_t> needs_segment;  // 1: in none; one is written around it
    };
    struct Segments {
        std::span<const std::int16_t> device;
        std::span<const std::uint64_t> address;
        std::span<const std::int64_t> size;
        std::span<const std::uint64_t> stream;
        std::span<const std::uint32_t> pool;
        std::span<const std::uint8_t> kind;  // SegmentKind
        std::span<const std::uint8_t> is_expandable;
        std::span<const std::uint32_t> stack;
        std::span<const std::uint64_t> blocks;  // number of blocks of each, in order
    };
    struct Blocks {
        std::span<const std::uint64_t> address;
        std::span<const std::int64_t> size;
        std::span<const std::int64_t> requested_size;
        std::span<const std::uint8_t> state;  // BlockState
        std::span<const std::uint32_t> stack;
    };

    Events events;
    Segments segments;
    Blocks blocks;
    std::vector<std::string> texts;
    std::span<const std::uint32_t> frame_names;  // texts
    std::span<const std::uint32_t> frame_files;  // texts
    std::span<const std::int32_t> frame_lines;
    std::span<const std::int32_t> stack_offsets;
    std::span<const std::uint32_t> stack_frames;
    std::vector<std::pair<std::int64_t, std::int64_t>> pools;
    std::string rest;  // other keys and values of the snapshot, pickled without memo
};

// Writes the pickle piece by piece. Exceptions of `sink` end it.
void write_torch_snapshot(const SnapshotToWrite& snapshot, ByteSink sink);

}  // namespace gpuviz::formats
