// The trace of a snapshot: the events of each device.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "formats/format_error.hpp"
#include "formats/torch_snapshot_reader.hpp"

namespace gpuviz::formats {

using record::Action;

namespace {

using Kind = PickleValue::Kind;

// The action for a name of torch's TraceEntry::Action; record_stream is gpuviz's addition.
std::optional<Action> action_of(std::string_view name) {
    if (name == "user_defined") return Action::annotate;
    const auto known = std::ranges::find(record::action_names, name);
    if (known == record::action_names.end()) return std::nullopt;
    return Action(known - record::action_names.begin());
}

std::int64_t time_of(PickleValue value, const Place& place) {
    if (value.kind() == Kind::none) return 0;
    if (value.kind() == Kind::floating) {
        const double time = value.floating();
        if (!(time >= 0 && time < 0x1p59)) fail_at(place, "time_us", "microseconds since 1970");
        return static_cast<std::int64_t>(time);
    }
    return size_of(value, place, "time_us");
}

}  // namespace

void TorchSnapshotReader::read_traces(PickleValue traces) {
    Place place{"device_traces"};
    const PickleItems& devices = list_of(traces, place, "");
    if (devices.count > std::size_t{most_devices})
        fail_at(place, "", "a list of at most 1024 devices");
    std::uint64_t count = 0;
    for (const PickleValue trace : devices.items()) {
        ++place.position;
        if (trace.kind() != Kind::none) count += list_of(trace, place, "").count;
    }
    count_rows(count, place.list);
    snapshot_.events.reserve(static_cast<std::size_t>(count));
    for (std::size_t device = 0; device < devices.items().size(); ++device) {
        const PickleValue trace = devices.items()[device];
        if (trace.kind() == Kind::none) continue;
        Place entry{"device_traces", static_cast<std::int64_t>(device), "", -1};
        for (const PickleValue event : trace.items()->items()) {
            ++entry.inner_position;
            read_event(event, static_cast<std::int16_t>(device), entry);
        }
    }
}

void TorchSnapshotReader::read_event(PickleValue event, std::int16_t device, const Place& place) {
    TorchEvents& events = snapshot_.events;
    std::uint32_t action = 0;
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::int64_t requested_size = -1;
    std::int64_t block_size = 0;
    std::uint64_t stream = 0;
    std::int64_t time_us = 0;
    std::uint32_t pool = 0;
    auto kind = SegmentKind::unknown;
    std::uint32_t stack = 0;
    std::uint32_t metadata = 0;
    const auto items = dict_of(event, place, "").items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const PickleValue value = items[i + 1];
        switch (key_of(items[i])) {
            case Key::action:
                action = text_of(value, place, "action");
                break;
            case Key::addr:
            case Key::device_free:
                address = word_of(value, place, "addr");
                break;
            case Key::size:
                size = size_of(value, place, "size");
                break;
            case Key::requested_size:
                requested_size = size_of(value, place, "requested_size");
                break;
            case Key::pool_is_large:
                if (value.kind() == Kind::boolean) {
                    kind = value.boolean() ? SegmentKind::large : SegmentKind::small;
                }
                break;
            case Key::synthetic:
                return;
            case Key::block_size:
                block_size = size_of(value, place, "block_size");
                break;
            case Key::stream:
                stream = value.kind() == Kind::none ? 0 : word_of(value, place, "stream");
                break;
            case Key::time_us:
                time_us = time_of(value, place);
                break;
            case Key::pool_id:
                pool = pool_of(value, place);
                break;
            case Key::frames:
                stack = stacks_.stack(value, place);
                break;
            case Key::user_metadata:
                metadata =
                    value.kind() == Kind::text && value.text()->size > 0 ? value.text()->id : 0;
                break;
            default:
                break;
        }
    }
    if (action == 0) fail_at(place, "action", "there");
    if (address >= end_of_memory) fail_at(place, "addr", "below 2**60");
    if (requested_size >= 0) {
        // gpuviz's addition for failed requests, of which torch stores only the rounded size.
        block_size = size;
        size = requested_size;
    }
    const auto push = [&](Action code) {
        events.action.push_back(code);
        events.device.push_back(device);
        events.address.push_back(address);
        events.size.push_back(size);
        events.block_size.push_back(block_size);
        events.stream.push_back(stream);
        events.time_us.push_back(time_us);
        events.pool.push_back(pool);
        events.kind.push_back(kind);
        events.stack.push_back(stack);
        events.metadata.push_back(metadata);
    };
    const std::string_view name = texts_->all()[action - 1]->view();
    if (const std::optional<Action> known = action_of(name)) {
        push(*known);
    } else if (name == "free") {
        push(Action::free_requested);
        push(Action::free_completed);
    } else {
        leave_out("events of the unknown action \"" + std::string(name.substr(0, 40)) + '"', 1);
    }
}

std::uint32_t TorchSnapshotReader::pool_of(PickleValue pool, const Place& place) {
    if (pool.kind() == Kind::none) return 0;
    const auto parts = list_of(pool, place, "pool_id").items();
    if (parts.size() != 2) fail_at(place, "pool_id", "a pair of integers");
    const std::pair<std::int64_t, std::int64_t> id{size_of(parts[0], place, "pool_id"),
                                                   size_of(parts[1], place, "pool_id")};
    const auto [entry, is_new] = pool_ids_.try_emplace(id, snapshot_.pools.size() + 1);
    if (is_new) snapshot_.pools.push_back(id);
    return entry->second;
}

}  // namespace gpuviz::formats
