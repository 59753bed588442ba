#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "record/activity_log.hpp"
#include "record/event_columns.hpp"
#include "record/stream_table.hpp"

namespace gpuviz::record {

// Converts events to chunks of columns. Not thread-safe, except for `streams`.
class Collector {
  public:
    static constexpr std::size_t rows_per_chunk = std::size_t{1} << 16;

    explicit Collector(StreamTable& streams) : streams_(streams) {}

    // Returns the number of records added: all, or fewer if out of memory.
    std::size_t append(std::span<const MemoryEvent> events, const ActivityLog& log) noexcept;

    // Full chunks, oldest first; with `flush` also the incomplete one.
    [[nodiscard]] std::vector<EventColumns> take(bool flush);

    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t bytes() const noexcept;

  private:
    void make_room(std::size_t rows);
    [[nodiscard]] std::uint32_t stream_id(const MemoryEvent& event, std::int64_t time);

    std::uint64_t rows_ = 0;  // appended so far
    EventColumns open_{rows_per_chunk};
    std::vector<EventColumns> full_;
    StreamTable& streams_;
    struct {
        int device = -1;
        std::uint64_t handle = 0;
        std::uint64_t version = 0;
        StreamTable::Holder holder;
    } last_;  // of the previous event, usually the same for the next
};

}  // namespace gpuviz::record
