#include "viewer/derived_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "analysis/codes.hpp"
#include "analysis/event_follower.hpp"
#include "record/names.hpp"
#include "state/free_levels.hpp"

namespace gpuviz::viewer {

using formats::Table;

namespace {

template <typename Values>
const Values& column(const Table& table, std::string_view name) {
    return std::get<Values>(std::ranges::find(table.columns, name, &formats::Column::name)->values);
}

template <typename Value>
std::span<const Value> values(const Table& table, std::string_view name) {
    return column<std::vector<Value>>(table, name);
}

std::span<const std::int8_t> codes(const Table& table, std::string_view name) {
    return column<formats::Coded<std::int8_t>>(table, name).codes;
}

const Table& table_of(const std::vector<Table>& tables, std::string_view name) {
    return *std::ranges::find(tables, name, &Table::name);
}

Table names(const Table& pools, const Table& streams) {
    std::vector<analysis::NamedKind> kinds(pools.rows, analysis::NamedKind::pool);
    kinds.resize(pools.rows + streams.rows, analysis::NamedKind::stream);
    const auto of_pools = values<std::uint32_t>(pools, "id");
    const auto of_streams = values<std::uint32_t>(streams, "id");
    std::vector<std::uint32_t> ids(of_pools.begin(), of_pools.end());
    ids.insert(ids.end(), of_streams.begin(), of_streams.end());
    formats::Texts shown;
    const auto owners = values<std::uint32_t>(pools, "owner");
    const auto& types = column<formats::Texts>(pools, "segment_type");
    const auto frameworks = codes(pools, "framework");
    for (std::size_t row = 0; row < pools.rows; ++row) {
        shown.add(record::pool_name(owners[row], types.at(row),
                                    static_cast<record::Framework>(frameworks[row])));
    }
    std::vector<std::string> called;
    const auto& known = column<formats::Texts>(streams, "name");
    for (std::size_t row = 0; row < streams.rows; ++row) called.emplace_back(known.at(row));
    record::number_alike(values<std::int16_t>(streams, "device"), called);
    for (const std::string& name : called) shown.add(name);
    Table table{"names", ids.size(), {}};
    table.with_codes("of", kinds, analysis::named_kind_names)
        .with("id", std::move(ids))
        .with("name", std::move(shown));
    return table;
}

Table memory_marks(const Table& events) {
    analysis::EventFollower follower{std::span<const std::uint64_t>()};
    follower.add({.time = values<std::int64_t>(events, "time"),
                  .action = codes(events, "action"),
                  .address = values<std::uint64_t>(events, "address"),
                  .size = values<std::int64_t>(events, "size"),
                  .requested_size = values<std::int64_t>(events, "requested_size"),
                  .device = values<std::int16_t>(events, "device")});
    std::vector<std::int16_t> device;
    std::vector<std::int32_t> event;
    std::vector<analysis::MarkKind> kind;
    std::vector<std::int64_t> bytes;
    for (const analysis::Mark& mark : follower.take_marks(true)) {
        device.push_back(mark.device);
        event.push_back(mark.event);
        kind.push_back(mark.kind);
        bytes.push_back(mark.bytes);
    }
    Table table{"memory_marks", device.size(), {}};
    table.with("device", std::move(device))
        .with("event", std::move(event))
        .with_codes("kind", kind, analysis::mark_kind_names)
        .with("bytes", std::move(bytes));
    return table;
}

Table free_levels(const Table& events) {
    const auto ids = [&](std::string_view name) { return values<std::uint32_t>(events, name); };
    state::FreeLevels followed;
    const auto rows =
        followed.add({.time = values<std::int64_t>(events, "time"),
                      .action = codes(events, "action"),
                      .address = values<std::uint64_t>(events, "address"),
                      .size = values<std::int64_t>(events, "size"),
                      .requested_size = values<std::int64_t>(events, "requested_size"),
                      .device = values<std::int16_t>(events, "device"),
                      .stream = ids("stream"),
                      .pool = ids("pool"),
                      .stack = ids("stack"),
                      .thread = ids("thread"),
                      .framework = codes(events, "framework")});
    std::vector<std::int16_t> device;
    std::vector<std::int32_t> event;
    std::vector<std::int64_t> largest;
    std::vector<std::int64_t> outside;
    for (const state::FreeLevel& row : rows) {
        device.push_back(row.device);
        event.push_back(row.event);
        largest.push_back(row.largest);
        outside.push_back(row.outside);
    }
    Table table{"free_levels", device.size(), {}};
    table.with("device", std::move(device))
        .with("event", std::move(event))
        .with("largest", std::move(largest))
        .with("outside", std::move(outside));
    return table;
}

}  // namespace

void append_derived_tables(std::vector<Table>& tables) {
    const Table& events = table_of(tables, "memory_events");
    std::vector<Table> derived;
    derived.push_back(names(table_of(tables, "pools"), table_of(tables, "streams")));
    derived.push_back(memory_marks(events));
    derived.push_back(free_levels(events));
    for (Table& table : derived) tables.push_back(std::move(table));
}

}  // namespace gpuviz::viewer
