#include "record/collector.hpp"

#include <new>
#include <utility>

namespace gpuviz::record {
namespace {

MemoryEventRow row_of(const MemoryEvent& event, std::int64_t time, std::uint32_t stream) {
    return {.time = time,
            .action = event.action,
            .address = event.address,
            .size = std::int64_t(event.size),
            .requested_size = std::int64_t(event.requested_size),
            .device = std::int16_t(event.device),
            .stream = stream,
            .pool = event.pool,
            .stack = event.stack,
            .thread = event.thread,
            .range = event.range,
            .framework = event.framework};
}

}  // namespace

std::size_t Collector::append(std::span<const MemoryEvent> events,
                              const ActivityLog& log) noexcept {
    std::size_t done = 0;
    try {
        for (; done < events.size(); ++done) {
            make_room(events[done].completed ? 2 : 1);
            const std::uint32_t stream =
                stream_id(events[done], log.since_start(events[done].time_ns));
            for_each_row(events[done], [&](const MemoryEvent& row) {
                open_.append(row_of(row, log.since_start(row.time_ns), stream));
                ++rows_;
            });
        }
    } catch (const std::bad_alloc&) {
        return done;
    }
    return done;
}

// The rows of a record share a chunk, which may therefore end one row early.
void Collector::make_room(std::size_t rows) {
    if (open_.rows() + rows > open_.capacity()) {
        EventColumns next(rows_per_chunk);
        full_.push_back(std::move(open_));
        open_ = std::move(next);
    }
}

std::vector<EventColumns> Collector::take(bool flush) {
    if (flush && open_.rows() != 0) {
        full_.push_back(EventColumns::tight_copy(open_));
        open_.clear();
    }
    return std::exchange(full_, {});
}

std::size_t Collector::bytes() const noexcept {
    return open_.bytes() + full_.size() * rows_per_chunk * EventColumns::bytes_per_row;
}

std::uint32_t Collector::stream_id(const MemoryEvent& event, std::int64_t time) {
    const std::uint64_t version = streams_.version();
    if (event.device != last_.device || event.stream != last_.handle || version != last_.version ||
        time < last_.holder.since || time >= last_.holder.until) {
        last_ = {event.device, event.stream, version,
                 streams_.holder(event.device, event.stream, time)};
    }
    return last_.holder.id;
}

}  // namespace gpuviz::record
