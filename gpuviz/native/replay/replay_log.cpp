#include "replay/replay_log.hpp"

#include <algorithm>

namespace gpuviz::replay {

ReplayLog::ReplayLog(const RecordedEvents& events, const StreamHandles& streams,
                     const RecordedOperations& operations)
    : events_(events), pools_(operations.pools) {
    for (const std::uint32_t id : streams.used_ids(events)) {
        ids_.insert_or_assign(streams.handle(id), id);
    }
    const auto recent = ids_.find(recent_handle_);
    recent_id_ = recent == ids_.end() ? 0 : recent->second;
    // A free is two events.
    reserve(operations.program.size() * 2);
}

void ReplayLog::reserve(std::size_t rows) {
    time.reserve(rows);
    action.reserve(rows);
    address.reserve(rows);
    size.reserve(rows);
    requested_size.reserve(rows);
    stream.reserve(rows);
    pool.reserve(rows);
    stack.reserve(rows);
    thread.reserve(rows);
    range.reserve(rows);
    framework.reserve(rows);
    origin.reserve(rows);
}

// Times never decrease, as events are in the order in which they happened.
void ReplayLog::begin(std::int64_t origin) noexcept {
    const auto row = static_cast<std::size_t>(origin);
    origin_ = origin;
    time_ = std::max(time_, events_.time[row]);
    range_ = events_.range[row];
}

void ReplayLog::push(const record::MemoryEvent& event) noexcept {
    record::for_each_row(event, [this](const record::MemoryEvent& row) {
        const std::uint32_t owner = row.pool / 2;
        time.push_back(time_);
        action.push_back(static_cast<std::int8_t>(row.action));
        address.push_back(row.address);
        size.push_back(static_cast<std::int64_t>(row.size));
        requested_size.push_back(static_cast<std::int64_t>(row.requested_size));
        stream.push_back(stream_of(row.stream));
        pool.push_back(owner == 0 ? row.pool : 2 * pools_[owner - 1] + row.pool % 2);
        stack.push_back(row.stack);
        thread.push_back(row.thread);
        range.push_back(range_);
        framework.push_back(static_cast<std::int8_t>(row.framework));
        origin.push_back(origin_);
    });
}

std::uint32_t ReplayLog::stream_of(std::uint64_t handle) noexcept {
    if (handle != recent_handle_) {
        const auto known = ids_.find(handle);
        recent_handle_ = handle;
        recent_id_ = known == ids_.end() ? 0 : known->second;
    }
    return recent_id_;
}

}  // namespace gpuviz::replay
