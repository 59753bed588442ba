#include "formats/torch_stacks.hpp"

#include <algorithm>
#include <limits>

#include "formats/format_error.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t hash_seed = 0x9E3779B97F4A7C15;
constexpr std::size_t most_frames = std::numeric_limits<std::int32_t>::max();

std::uint64_t hashed(std::uint64_t hash, std::uint64_t value) noexcept {
    hash ^= value;
    hash *= 0xFF51AFD7ED558CCD;
    return hash ^ hash >> 32;
}

// torch writes an unknown line as -1 in an unsigned number of 64 bits.
std::int64_t line_of(PickleValue value) noexcept {
    if (value.kind() == Kind::large_integer) {
        return value.large_integer() == std::numeric_limits<std::uint64_t>::max() ? -1 : 0;
    }
    return value.kind() == Kind::integer ? value.integer() : 0;
}

}  // namespace

std::uint32_t TorchStackTable::stack(PickleValue frames, const Place& place) {
    if (frames.kind() == Kind::none) return 0;
    PickleItems& list = list_of(frames, place, "frames");
    if (list.is_marked()) return list.count;
    scratch_.clear();
    for (const PickleValue each : list.items()) {
        // Frames of other languages may be plain texts without file and line.
        if (each.kind() == Kind::dict) scratch_.push_back(frame(each, place));
    }
    if (scratch_.empty()) return 0;
    const std::uint32_t id = stack_of(scratch_);
    list.mark(id);
    return id;
}

std::uint32_t TorchStackTable::frame(PickleValue value, const Place& place) {
    PickleItems& items = *value.items();
    if (items.is_marked()) return items.count;
    std::uint32_t name = 0;
    std::uint32_t filename = 0;
    std::int64_t line = 0;
    const auto entries = items.items();
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
        const PickleValue entry = entries[i + 1];
        switch (key_of(entries[i])) {
            case Key::name:
                name = entry.kind() == Kind::none ? 0 : text_of(entry, place, "name");
                break;
            case Key::filename:
                filename = entry.kind() == Kind::none ? 0 : text_of(entry, place, "filename");
                break;
            case Key::line:
                line = line_of(entry);
                break;
            default:
                break;
        }
    }
    line = std::clamp<std::int64_t>(line, -1, std::numeric_limits<std::int32_t>::max());
    const std::uint64_t hash =
        hashed(hashed(hashed(hash_seed, name), filename), static_cast<std::uint64_t>(line));
    const auto [first, last] = frame_ids_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
        const std::size_t row = known->second - 1;
        if (frames_->name[row] == name && frames_->filename[row] == filename &&
            frames_->line[row] == line) {
            items.mark(known->second);
            return known->second;
        }
    }
    frames_->name.push_back(name);
    frames_->filename.push_back(filename);
    frames_->line.push_back(static_cast<std::int32_t>(line));
    const auto id = static_cast<std::uint32_t>(frames_->line.size());
    frame_ids_.emplace(hash, id);
    items.mark(id);
    return id;
}

std::uint32_t TorchStackTable::stack_of(const std::vector<std::uint32_t>& frames) {
    std::uint64_t hash = hash_seed;
    for (const std::uint32_t frame : frames) hash = hashed(hash, frame);
    const auto [first, last] = stack_ids_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
        const auto begin = stacks_->frames.begin() + stacks_->first[known->second - 1];
        const auto end = stacks_->frames.begin() + stacks_->first[known->second];
        if (std::equal(begin, end, frames.begin(), frames.end())) return known->second;
    }
    if (stacks_->frames.size() + frames.size() > most_frames) {
        throw FormatError("frames", "more than 2**31 frames in its distinct stacks");
    }
    stacks_->frames.insert(stacks_->frames.end(), frames.begin(), frames.end());
    stacks_->first.push_back(static_cast<std::int32_t>(stacks_->frames.size()));
    const auto id = static_cast<std::uint32_t>(stacks_->first.size() - 1);
    stack_ids_.emplace(hash, id);
    return id;
}

}  // namespace gpuviz::formats
