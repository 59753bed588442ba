// Damaged memory snapshots are rejected or read, without any access out of bounds.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "check.hpp"
#include "formats/format_error.hpp"
#include "formats/torch_history.hpp"
#include "formats/torch_recording.hpp"
#include "formats/torch_snapshot.hpp"
#include "formats/torch_snapshot_writer.hpp"

namespace {

using gpuviz::record::Action;

constexpr std::uint64_t base = 0x7F0000000000;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// A trace of blocks in an expandable and a plain segment, as columns.
struct Program {
    std::vector<std::int8_t> action;
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> none;
    std::vector<std::uint64_t> stream;
    std::vector<std::uint32_t> zero;
    std::vector<std::uint32_t> stack;
    std::vector<std::uint8_t> unknown;
    std::vector<std::uint8_t> inside;

    void add(Action what, std::uint64_t where, std::uint64_t bytes) {
        action.push_back(static_cast<std::int8_t>(what));
        address.push_back(where);
        size.push_back(static_cast<std::int64_t>(bytes));
        none.push_back(0);
        stream.push_back(0);
        zero.push_back(0);
        stack.push_back(action.size() % 3);
        unknown.push_back(2);
        inside.push_back(0);
    }
};

Program program() {
    Program made;
    made.add(Action::segment_alloc, base, 20 * mib);
    made.add(Action::segment_map, base + 64 * mib, 20 * mib);
    made.add(Action::segment_map, base + 84 * mib, 20 * mib);
    for (std::uint64_t n = 0; n < 12; ++n) {
        const std::uint64_t home = n % 2 == 0 ? base : base + 64 * mib;
        made.add(Action::alloc, home, (n + 2) * mib + 5);
        made.add(Action::free_requested, home, (n + 2) * mib + 5);
        made.add(Action::free_completed, home, (n + 2) * mib + 5);
    }
    made.add(Action::segment_unmap, base + 84 * mib, 20 * mib);
    made.add(Action::oom, 7, 100 * mib);
    return made;
}

std::string snapshot_bytes() {
    const Program made = program();
    const std::vector<std::int16_t> device{0, 0};
    const std::vector<std::uint64_t> address{base, base + 64 * mib};
    const std::vector<std::int64_t> size{20 * mib, 20 * mib};
    const std::vector<std::uint64_t> stream{0, 0};
    const std::vector<std::uint32_t> zero{0, 0};
    const std::vector<std::uint8_t> kind{1, 1};
    const std::vector<std::uint8_t> is_expandable{0, 1};
    const std::vector<std::uint64_t> blocks{1, 1};
    const std::vector<std::uint8_t> state{0, 0};
    const std::vector<std::uint32_t> names{1, 2};
    const std::vector<std::int32_t> lines{3, 4};
    const std::vector<std::int32_t> offsets{0, 1, 3};
    const std::vector<std::uint32_t> frames{1, 1, 2};
    gpuviz::formats::SnapshotToWrite snapshot;
    snapshot.events = {{made.action.size()}, made.action, made.address, made.size,  made.none,
                       made.stream,          made.none,   made.zero,    made.stack, made.zero,
                       made.unknown,         made.inside};
    snapshot.segments = {device, address, size, stream, zero, kind, is_expandable, zero, blocks};
    snapshot.blocks = {address, size, size, state, zero};
    snapshot.texts = {"step", "train.py"};
    snapshot.frame_names = names;
    snapshot.frame_files = names;
    snapshot.frame_lines = lines;
    snapshot.stack_offsets = offsets;
    snapshot.stack_frames = frames;
    snapshot.pools = {{0, 0}};
    std::string bytes;
    gpuviz::formats::write_torch_snapshot(snapshot,
                                          [&](std::string_view piece) { bytes += piece; });
    return bytes;
}

std::string mutated(std::string bytes, std::mt19937& random) {
    const auto below = [&](std::size_t limit) {
        return limit == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    for (std::size_t change = below(4) + 1; change > 0; --change) {
        const std::size_t place = below(bytes.size());
        switch (below(4)) {
            case 0:
                if (!bytes.empty()) bytes[place] = static_cast<char>(random());
                break;
            case 1:
                bytes.erase(place, below(20) + 1);
                break;
            case 2:
                bytes.insert(place, bytes.substr(below(bytes.size()), below(60)));
                break;
            default:
                bytes.insert(place, 1, static_cast<char>(random()));
        }
    }
    return bytes;
}

// Whether a file of these bytes is accepted.
bool is_read(const std::string& bytes) {
    try {
        // As the viewer reads it, from memory.
        gpuviz::formats::ByteSource source(std::vector<char>(bytes.begin(), bytes.end()));
        auto snapshot = gpuviz::formats::read_torch_snapshot(std::move(source), 64 * mib);
        const auto history = gpuviz::formats::torch_history(snapshot);
        CHECK_EQUAL(history.size.size(), snapshot.events.count());
        const auto recording = gpuviz::formats::torch_recording(std::move(snapshot));
        CHECK_EQUAL(recording.tables.back().rows,
                    history.before.size() + history.size.size() + history.after.size());
        return true;
    } catch (const gpuviz::formats::FormatError& error) {
        CHECK_EQUAL(std::string(error.what()).size() > 5, true);
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int more = effort(argc, argv);
    const auto folder = std::filesystem::temp_directory_path();
    const std::string path = folder / ("gpuviz-snapshot-" + std::to_string(getpid()));
    const std::string whole = snapshot_bytes();
    CHECK_EQUAL(is_read(whole), true);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
    const auto snapshot = gpuviz::formats::read_torch_snapshot({path, {}}, 64 * mib);
    const auto history = gpuviz::formats::torch_history(snapshot);
    CHECK_EQUAL(snapshot.events.count(), program().action.size());
    CHECK_EQUAL(snapshot.stacks.first.size(), std::size_t{3});
    CHECK_EQUAL(history.before.empty(), true);
    CHECK_EQUAL(history.after.empty(), true);
    CHECK_EQUAL(history.contradictions, 0);
    for (std::size_t length = 0; length < whole.size(); length += std::size_t(61 / more)) {
        CHECK_EQUAL(is_read(whole.substr(0, length)), false);
    }
    std::mt19937 random(1);
    const int rounds = 400 * more;
    int read = 0;
    for (int round = 0; round < rounds; ++round) read += is_read(mutated(whole, random));
    CHECK_EQUAL(read > 0, true);
    CHECK_EQUAL(read < rounds, true);
    std::filesystem::remove(path);
    return 0;
}
