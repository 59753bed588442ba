#include "formats/torch_tables.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "record/names.hpp"

namespace gpuviz::formats {

using record::Action;

namespace {

// The rows of the events in the order of an exported recording; nothing if that is unknown.
std::optional<std::vector<std::size_t>> recorded_order(const std::vector<std::int64_t>& pairs,
                                                       const std::vector<std::int16_t>& devices) {
    if (pairs.empty()) return std::nullopt;
    struct Rows {
        std::size_t next;
        std::size_t end;
    };
    std::map<std::int64_t, Rows> rows;
    for (std::size_t row = 0; row < devices.size(); ++row) {
        ++rows.try_emplace(devices[row], Rows{row, row}).first->second.end;
    }
    std::vector<std::size_t> order;
    order.reserve(devices.size());
    for (std::size_t at = 0; at < pairs.size(); at += 2) {
        const auto of_device = rows.find(pairs[at]);
        if (of_device == rows.end() && pairs[at + 1] == 0 && pairs[at] >= 0) continue;
        if (of_device == rows.end() || pairs[at + 1] < 0) return std::nullopt;
        auto& [next, end] = of_device->second;
        if (static_cast<std::uint64_t>(pairs[at + 1]) > end - next) return std::nullopt;
        for (std::int64_t left = pairs[at + 1]; left > 0; --left) order.push_back(next++);
    }
    if (order.size() != devices.size()) return std::nullopt;
    return order;
}

// The values in an order, between those of the rows before and after.
template <typename Value, typename Field>
std::vector<Value> whole(std::vector<Value> values, const TorchHistory& history,
                         const std::optional<std::vector<std::size_t>>& order, Field field) {
    if (!order && history.before.empty() && history.after.empty()) return values;
    std::vector<Value> all;
    all.reserve(history.before.size() + values.size() + history.after.size());
    for (const TorchRow& row : history.before) all.push_back(field(row));
    if (order) {
        for (const std::size_t row : *order) all.push_back(values[row]);
    } else {
        all.insert(all.end(), values.begin(), values.end());
    }
    for (const TorchRow& row : history.after) all.push_back(field(row));
    return all;
}

// Converts sizes from the conventions of torch's trace to those of `memory_events`.
void keep_conventions(TorchEventColumns& columns) {
    for (std::size_t row = 0; row < columns.count(); ++row) {
        const Action action = columns.action[row];
        if (action >= Action::segment_alloc && action <= Action::segment_unmap) {
            columns.requested_size[row] = 0;
        }
        columns.size[row] = std::max(columns.size[row], columns.requested_size[row]);
    }
}

template <typename Value>
std::vector<Value> distinct(std::vector<Value> values) {
    std::ranges::sort(values);
    const auto rest = std::ranges::unique(values);
    values.erase(rest.begin(), rest.end());
    return values;
}

struct Streams {
    std::vector<std::uint32_t> of_event;  // ids
    Table table;
};

Streams streams_of(const TorchEventColumns& columns) {
    std::map<std::pair<std::int16_t, std::uint64_t>, std::uint32_t> ids;
    for (std::size_t row = 0; row < columns.count(); ++row) {
        ids.try_emplace({columns.device[row], columns.handle[row]});
    }
    Streams streams;
    std::vector<std::uint32_t> id;
    std::vector<std::int16_t> device;
    std::vector<std::uint64_t> handle;
    Texts name;
    std::vector<record::StreamKind> kind;
    for (auto& [stream, number] : ids) {
        number = static_cast<std::uint32_t>(id.size() + 1);
        id.push_back(number);
        device.push_back(stream.first);
        handle.push_back(stream.second);
        name.add(record::own_name(number, stream.second));
        kind.push_back(record::stream_kind(stream.second));
    }
    streams.table = {"streams", id.size(), {}};
    streams.table.with("id", std::move(id))
        .with("device", std::move(device))
        .with("handle", std::move(handle))
        .with("name", std::move(name))
        .with_all("named", std::uint8_t{0})
        .with_codes("kind", kind, record::stream_kind_names)
        .with_all("priority", std::int32_t{0})
        .with_all("created", std::int64_t{0})
        .with_all("destroyed", std::int64_t{-1});
    streams.of_event.reserve(columns.count());
    for (std::size_t row = 0; row < columns.count(); ++row) {
        streams.of_event.push_back(ids.find({columns.device[row], columns.handle[row]})->second);
    }
    return streams;
}

Table devices_of(const std::vector<std::int16_t>& devices) {
    std::vector<std::int16_t> ids = distinct(devices);
    Table table{"devices", ids.size(), {}};
    table.with("id", std::move(ids))
        .with_all("name", std::string_view())
        .with_all("total_memory", std::int64_t{0})
        .with_all("kind", std::string_view("cuda"))
        .with_all("uuid", std::string_view())
        .with_all("multiprocessors", std::int32_t{0})
        .with_all("memory_bandwidth", std::int64_t{0});
    return table;
}

Table pools_of(const std::vector<std::uint32_t>& pools) {
    std::vector<std::uint32_t> ids = distinct(pools);
    std::vector<std::uint32_t> owners;
    Texts types;
    for (const std::uint32_t pool : ids) {
        owners.push_back(pool / 2);
        types.add(pool % 2 != 0 ? "large" : "small");
    }
    Table table{"pools", ids.size(), {}};
    table.with("id", std::move(ids))
        .with("owner", std::move(owners))
        .with("segment_type", std::move(types))
        .with_codes("framework", std::vector(table.rows, record::Framework::torch),
                    record::framework_names)
        .with_codes("memory", std::vector(table.rows, record::PoolMemory::device),
                    record::pool_memory_names);
    return table;
}

}  // namespace

TorchEventColumns torch_event_columns(TorchSnapshot& snapshot, const TorchHistory& history,
                                      const TorchTimes& times, std::vector<std::uint32_t> ranges) {
    TorchEvents events = std::exchange(snapshot.events, {});
    const auto order = recorded_order(snapshot.recorder.device_order, events.device);
    const auto all = [&](auto values, auto field) {
        return whole(std::move(values), history, order, field);
    };
    TorchEventColumns columns;
    columns.time = all(times.events, [](const TorchRow&) { return std::int64_t{0}; });
    std::fill(columns.time.end() - static_cast<std::ptrdiff_t>(history.after.size()),
              columns.time.end(), times.end);
    columns.action = all(std::move(events.action), [](const TorchRow& r) { return r.action; });
    columns.address = all(std::move(events.address), [](const TorchRow& r) { return r.address; });
    columns.size = all(history.size, [](const TorchRow& r) { return r.size; });
    columns.requested_size =
        all(std::move(events.size), [](const TorchRow& r) { return r.requested_size; });
    columns.device = all(std::move(events.device), [](const TorchRow& r) { return r.device; });
    columns.handle = all(std::move(events.stream), [](const TorchRow& r) { return r.stream; });
    columns.pool = all(history.pool, [](const TorchRow& r) { return r.pool; });
    columns.stack = all(std::move(events.stack), [](const TorchRow& r) { return r.stack; });
    columns.range = all(std::move(ranges), [](const TorchRow&) { return std::uint32_t{0}; });
    keep_conventions(columns);
    return columns;
}

void append_event_tables(TorchEventColumns columns, std::vector<Table>& tables) {
    Streams streams = streams_of(columns);
    tables.push_back(devices_of(columns.device));
    tables.push_back(std::move(streams.table));
    tables.push_back(pools_of(columns.pool));
    Table events{"memory_events", columns.count(), {}};
    events.with("time", std::move(columns.time))
        .with_codes("action", columns.action, record::action_names)
        .with("address", std::move(columns.address))
        .with("size", std::move(columns.size))
        .with("requested_size", std::move(columns.requested_size))
        .with("device", std::move(columns.device))
        .with("stream", std::move(streams.of_event))
        .with("pool", std::move(columns.pool))
        .with("stack", std::move(columns.stack))
        .with_all("thread", std::uint32_t{0})
        .with("range", std::move(columns.range))
        .with_codes("framework", std::vector(events.rows, record::Framework::torch),
                    record::framework_names);
    tables.push_back(std::move(events));
}

}  // namespace gpuviz::formats
