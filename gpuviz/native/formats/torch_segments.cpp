// The segments of a snapshot and their blocks: the state of memory at the time of the snapshot.
#include "formats/format_error.hpp"
#include "formats/torch_snapshot_reader.hpp"
#include "state/device_memory.hpp"

namespace gpuviz::formats {

using state::BlockState;

using Kind = PickleValue::Kind;

struct TorchSnapshotReader::Block {
    std::uint64_t address = 0;  // 0: directly after the previous block
    std::int64_t size = -1;
    std::int64_t requested_size = -1;
    std::uint8_t state = 0;
    std::uint32_t stack = 0;
};

void TorchSnapshotReader::read_segments(PickleValue segments) {
    Place place{"segments"};
    const PickleItems& list = list_of(segments, place, "");
    count_rows(list.count, place.list);
    for (const PickleValue each : list.items()) {
        ++place.position;
        read_segment(each, place);
    }
}

void TorchSnapshotReader::read_segment(PickleValue segment, const Place& place) {
    std::int64_t device = 0;
    std::uint64_t address = 0;
    std::int64_t size = -1;
    std::uint64_t stream = 0;
    std::uint32_t pool = 0;
    auto kind = SegmentKind::unknown;
    bool is_expandable = false;
    std::uint32_t stack = 0;
    PickleValue blocks;
    const auto items = dict_of(segment, place, "").items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const PickleValue value = items[i + 1];
        switch (key_of(items[i])) {
            case Key::device:
                device = value.kind() == Kind::integer ? value.integer() : most_devices;
                break;
            case Key::address:
                address = word_of(value, place, "address");
                break;
            case Key::total_size:
                size = size_of(value, place, "total_size");
                break;
            case Key::stream:
                stream = value.kind() == Kind::none ? 0 : word_of(value, place, "stream");
                break;
            case Key::segment_type: {
                const auto name = texts_->all()[text_of(value, place, "segment_type") - 1]->view();
                if (name == "small") kind = SegmentKind::small;
                if (name == "large") kind = SegmentKind::large;
                break;
            }
            case Key::segment_pool_id:
                pool = pool_of(value, place);
                break;
            case Key::is_expandable:
                is_expandable = value.kind() == Kind::boolean && value.boolean();
                break;
            case Key::frames:
                stack = stacks_.stack(value, place);
                break;
            case Key::blocks:
                blocks = value;
                break;
            default:
                break;
        }
    }
    if (device < 0) {
        leave_out("segments of host memory", 1);
        return;
    }
    if (device >= most_devices) fail_at(place, "device", "an ordinal below 1024");
    if (size <= 0) fail_at(place, "total_size", "a positive integer");
    if (address >= end_of_memory) fail_at(place, "address", "below 2**60");
    TorchSegments& rows = snapshot_.segments;
    rows.device.push_back(static_cast<std::int16_t>(device));
    rows.address.push_back(address);
    rows.size.push_back(size);
    rows.stream.push_back(stream);
    rows.pool.push_back(pool);
    rows.kind.push_back(static_cast<std::uint8_t>(kind));
    rows.is_expandable.push_back(is_expandable ? 1 : 0);
    rows.stack.push_back(stack);
    read_blocks(blocks, place);
}

void TorchSnapshotReader::read_blocks(PickleValue blocks, const Place& place) {
    if (blocks.kind() == Kind::none) fail_at(place, "blocks", "a list");
    const PickleItems& list = list_of(blocks, place, "blocks");
    count_rows(list.count, place.list);
    const std::uint64_t start = snapshot_.segments.address.back();
    const std::uint64_t end = start + static_cast<std::uint64_t>(snapshot_.segments.size.back());
    std::uint64_t next = start;
    Place entry{place.list, place.position, "blocks", -1};
    TorchBlocks& rows = snapshot_.blocks;
    for (const PickleValue each : list.items()) {
        ++entry.inner_position;
        Block block = block_of(each, entry);
        if (block.size <= 0) fail_at(entry, "size", "a positive integer");
        if (block.address == 0) block.address = next;
        next = block.address + static_cast<std::uint64_t>(block.size);
        const bool is_inside = block.address >= start && block.address < end && next <= end;
        if (!is_inside) fail_at(entry, "", "the block to lie inside its segment");
        if (block.requested_size < 0) block.requested_size = block.size;
        rows.segment.push_back(static_cast<std::uint32_t>(snapshot_.segments.count() - 1));
        rows.address.push_back(block.address);
        rows.size.push_back(block.size);
        rows.requested_size.push_back(block.requested_size);
        rows.state.push_back(block.state);
        rows.stack.push_back(block.stack);
    }
}

TorchSnapshotReader::Block TorchSnapshotReader::block_of(PickleValue value, const Place& place) {
    Block block;
    PickleValue history;
    const auto items = dict_of(value, place, "").items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const PickleValue entry = items[i + 1];
        switch (key_of(items[i])) {
            case Key::address:
            case Key::addr:
                block.address = word_of(entry, place, "address");
                break;
            case Key::size:
                block.size = size_of(entry, place, "size");
                break;
            case Key::requested_size:
                block.requested_size = size_of(entry, place, "requested_size");
                break;
            case Key::state:
                block.state = state_of(entry, place);
                break;
            case Key::frames:
                block.stack = stacks_.stack(entry, place);
                break;
            case Key::history:
                history = entry;
                break;
            default:
                break;
        }
    }
    if (block.address >= end_of_memory) fail_at(place, "address", "below 2**60");
    if (history.kind() != Kind::none) read_history(history, block, place);
    return block;
}

// Until torch 2.0 a block had a list of its allocations, newest first, instead of frames.
void TorchSnapshotReader::read_history(PickleValue history, Block& block, const Place& place) {
    const auto entries = list_of(history, place, "history").items();
    if (entries.empty()) return;
    const auto items = dict_of(entries.front(), place, "history").items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const PickleValue value = items[i + 1];
        if (key_of(items[i]) == Key::real_size && block.requested_size < 0) {
            block.requested_size = size_of(value, place, "real_size");
        }
        if (key_of(items[i]) == Key::frames && block.stack == 0) {
            block.stack = stacks_.stack(value, place);
        }
    }
}

std::uint8_t TorchSnapshotReader::state_of(PickleValue state, const Place& place) const {
    const auto name = texts_->all()[text_of(state, place, "state") - 1]->view();
    const auto code = [](BlockState known) { return static_cast<std::uint8_t>(known); };
    if (name == "inactive") return code(BlockState::inactive);
    if (name == "active_allocated") return code(BlockState::active_allocated);
    // The allocator writes the first name; the documentation has the second.
    if (name == "active_pending_free" || name == "active_awaiting_free") {
        return code(BlockState::active_pending_free);
    }
    fail_at(place, "state", "inactive, active_allocated or active_pending_free");
}

}  // namespace gpuviz::formats
