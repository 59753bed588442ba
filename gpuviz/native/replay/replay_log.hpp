#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/memory_event.hpp"
#include "replay/recorded_operations.hpp"

namespace gpuviz::replay {

// Receives the events of a replay.
class ReplaySink : public record::MemoryEventSink {
  public:
    // Events from now on repeat this row of the recording.
    virtual void begin(std::int64_t origin) noexcept = 0;
};

// Columns of the table `memory_events` of a replay, which has the times, ranges and streams of the
// recording. Must not be read during a push.
class ReplayLog final : public ReplaySink {
  public:
    // `events` must outlive the replay of `operations`.
    ReplayLog(const RecordedEvents& events, const StreamHandles& streams,
              const RecordedOperations& operations);

    // The events have the time and range of the row.
    void begin(std::int64_t origin) noexcept override;
    // Terminates the process if out of memory, because a log with missing events would be wrong.
    void push(const record::MemoryEvent& event) noexcept override;

    std::vector<std::int64_t> time;
    std::vector<std::int8_t> action;
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> requested_size;
    std::vector<std::uint32_t> stream;  // ids of the recording
    std::vector<std::uint32_t> pool;
    std::vector<std::uint32_t> stack;
    std::vector<std::uint32_t> thread;
    std::vector<std::uint32_t> range;
    std::vector<std::int8_t> framework;
    std::vector<std::int64_t> origin;  // the row whose repetition caused the event

  private:
    void reserve(std::size_t rows);
    [[nodiscard]] std::uint32_t stream_of(std::uint64_t handle) noexcept;

    const RecordedEvents& events_;
    std::unordered_map<std::uint64_t, std::uint32_t> ids_;  // the last stream with each handle
    std::vector<std::uint32_t> pools_;  // the recording's number of each of the replay's, from 1
    std::uint64_t recent_handle_ = 0;
    std::uint32_t recent_id_ = 0;
    std::int64_t origin_ = -1;
    std::int64_t time_ = 0;
    std::uint32_t range_ = 0;
};

}  // namespace gpuviz::replay
