#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "record/event_columns.hpp"

namespace gpuviz {

// Row of the table `streams`.
struct Stream {
    std::uint32_t id;  // 1, 2, ... in order of first use
    int device;
    std::uint64_t handle;  // a raw CUstream
};

// Turns events into chunks of columns and numbers the streams they name. Not thread-safe.
class Collector {
  public:
    static constexpr std::size_t rows_per_chunk = std::size_t{1} << 16;

    // How many records became rows: all, or fewer when memory for columns ran out.
    std::size_t append(std::span<const MemoryEvent> events, std::int64_t start_ns) noexcept;

    // Full chunks, oldest first; with `flush` the begun one too.
    [[nodiscard]] std::vector<EventColumns> take(bool flush);

    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
    [[nodiscard]] const std::vector<Stream>& streams() const noexcept { return streams_; }
    [[nodiscard]] std::size_t bytes() const noexcept;

  private:
    void make_room(std::size_t rows);
    [[nodiscard]] std::uint32_t stream_id(const MemoryEvent& event);

    std::uint64_t rows_ = 0;  // appended so far
    EventColumns open_{rows_per_chunk};
    std::vector<EventColumns> full_;
    std::vector<Stream> streams_;
    std::map<std::pair<int, std::uint64_t>, std::uint32_t> stream_ids_;
    Stream last_{0, -1, 0};  // of the previous event, nearly always the next one's too
};

}  // namespace gpuviz
