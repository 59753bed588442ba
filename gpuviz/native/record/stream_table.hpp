#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "record/codes.hpp"

namespace gpuviz::record {

// Row of the table `streams`.
struct Stream {
    static constexpr std::int64_t alive = -1;
    static constexpr std::uint64_t no_handle = ~std::uint64_t{0};

    std::uint32_t id;  // 1, 2, ... in order of first use
    int device;
    std::uint64_t handle;  // a raw CUstream; no_handle for one that the driver made for itself
    std::uint64_t tracer_id = 0;  // CUPTI's id of the stream, never reused; 0: unknown
    StreamKind kind = StreamKind::unknown;
    std::int32_t priority = 0;
    std::int64_t created = 0;  // since the session's start; 0: before
    std::int64_t destroyed = alive;
    std::string name{};  // given by the user; empty: none
};

// Streams by handle and time, and by the tracer's id. Thread-safe.
class StreamTable {
  public:
    // A stream and the times at which its handle denotes it: from `since` until before `until`.
    struct Holder {
        std::uint32_t id = 0;
        std::int64_t since = 0;
        std::int64_t until = 0;
    };

    // The stream with `handle` at `time` (since the session's start); a new row if there is none.
    [[nodiscard]] std::uint32_t by_handle(int device, std::uint64_t handle, std::int64_t time);
    // The same with the times, which hold while `version` stays the same.
    [[nodiscard]] Holder holder(int device, std::uint64_t handle, std::int64_t time);
    // The stream with the tracer's id; a new row without a handle if it is unknown.
    [[nodiscard]] std::uint32_t by_tracer_id(int device, std::uint64_t tracer_id);

    // Another id by which the tracer names a stream: where another device's context is current.
    void add_tracer_id(std::uint32_t id, int device, std::uint64_t tracer_id);

    // The tracer will number all streams anew.
    void forget_tracer_ids();

    // Merges known facts on a stream. `known.id` is ignored; `created` 0 means that it existed
    // before the recording.
    std::uint32_t describe(const Stream& known);
    // From `time` on, `handle` may denote another stream.
    void destroyed(int device, std::uint64_t handle, std::int64_t time);
    void rename(std::uint32_t id, std::string name);

    // The rows that are new or changed since the last call.
    [[nodiscard]] std::vector<Stream> take_changed();
    [[nodiscard]] std::vector<Stream> all() const;
    // Changes whenever a handle may denote a different stream.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(); }

  private:
    using Key = std::pair<int, std::uint64_t>;

    [[nodiscard]] Holder find(const Key& key, std::int64_t time) const;
    Stream& add(Stream stream);

    mutable std::mutex mutex_;
    std::vector<Stream> streams_;  // stream `id` at id - 1
    std::vector<bool> changed_;
    std::map<Key, std::vector<std::uint32_t>> by_handle_;  // oldest first
    std::map<Key, std::uint32_t> by_tracer_id_;
    std::atomic<std::uint64_t> version_{0};
};

}  // namespace gpuviz::record
