#include "record/collector.hpp"

#include <new>
#include <utility>

namespace gpuviz {

std::size_t Collector::append(std::span<const MemoryEvent> events, std::int64_t start_ns) noexcept {
    std::size_t done = 0;
    try {
        for (; done < events.size(); ++done) {
            make_room(events[done].completed ? 2 : 1);
            const std::uint32_t stream = stream_id(events[done]);
            for_each_row(events[done], [&](const MemoryEvent& row) {
                open_.append(row, start_ns, stream);
                ++rows_;
            });
        }
    } catch (const std::bad_alloc&) {
        return done;
    }
    return done;
}

// A record's rows share a chunk, which may therefore end one row early.
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

std::uint32_t Collector::stream_id(const MemoryEvent& event) {
    if (event.device == last_.device && event.stream == last_.handle) {
        return last_.id;
    }
    const std::pair<int, std::uint64_t> key{event.device, event.stream};
    auto found = stream_ids_.find(key);
    if (found == stream_ids_.end()) {
        const auto id = std::uint32_t(streams_.size() + 1);
        streams_.reserve(streams_.size() + 1);  // so that both lists grow or neither
        found = stream_ids_.emplace(key, id).first;
        streams_.push_back({id, event.device, event.stream});
    }
    last_ = {found->second, event.device, event.stream};
    return last_.id;
}

}  // namespace gpuviz
