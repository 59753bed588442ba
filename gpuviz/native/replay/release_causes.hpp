#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/memory_event.hpp"
#include "replay/recorded_operations.hpp"

namespace gpuviz::replay {

[[nodiscard]] inline record::Action action_of(const RecordedEvents& events, std::size_t row) {
    return static_cast<record::Action>(events.action[row]);
}

[[nodiscard]] inline bool is_release(record::Action action) noexcept {
    return action == record::Action::segment_free || action == record::Action::segment_unmap;
}

[[nodiscard]] inline std::uint64_t unsigned_size(std::int64_t size) noexcept {
    return static_cast<std::uint64_t>(size);
}

// What an allocator did by itself before the next thing that the program asked for.
struct Run {
    std::vector<std::size_t> internal;  // rows: completed frees, and changes of segments
    std::optional<std::size_t> last;    // the row of what was asked for; none at the end
    bool completes_at_once = false;     // of a free: it waits for no stream
};

// Splits the events of a device into runs.
class RunReader {
  public:
    // Changes of segments in the first `initial_events` rows are none that a program caused.
    RunReader(const RecordedEvents& events, std::size_t initial_events)
        : events_(events), initial_events_(initial_events) {
        skip_other_devices();
    }

    [[nodiscard]] std::optional<Run> next();
    [[nodiscard]] std::size_t first_row() const noexcept {
        return std::min(row_, events_.count() - 1);
    }

  private:
    void skip_other_devices() noexcept {
        while (row_ < events_.count() && events_.device[row_] != events_.device_id) ++row_;
    }

    const RecordedEvents& events_;
    std::size_t initial_events_;
    std::size_t row_ = 0;
};

struct Cause {
    bool is_call = false;       // empty_cache was called, and the recording lacks it
    std::size_t first = 0;      // of what the call caused, in the run
    std::size_t calls_end = 0;  // where what the request caused begins, in the run
    // The request waited for all streams, so that frees completed only then.
    bool completes_frees = false;
};

// Infers why segments were released: by the request after it, or by a call that was not recorded.
// Evidence is the call stack of the release if it has its own, else whether the request fitted.
class ReleaseCauses {
  public:
    // Both must outlive it.
    ReleaseCauses(const RecordedEvents& events, const RecordedProgram& recorded);

    // To be called with each run in order.
    [[nodiscard]] Cause of(const Run& run);
    // The highest limit of reserved bytes under which the requests that failed fail; none if the
    // device's memory is known, if no request failed, or if more was reserved at some time.
    [[nodiscard]] std::optional<std::uint64_t> inferred_limit() const noexcept {
        return inferred_limit_;
    }

  private:
    struct Releases {
        std::size_t first;
        std::size_t last;
    };

    void look_through();
    void notice(const Run& run, std::vector<std::uint64_t>& bounds);
    void change_reserved(const Run& run);
    // The first and last release of memory of the default pool.
    [[nodiscard]] std::optional<Releases> releases(const Run& run) const;
    [[nodiscard]] bool has_own_stack(std::size_t row) const;
    [[nodiscard]] bool is_caused_by_request(const Run& run, const Releases& released) const;
    [[nodiscard]] bool is_garbage_collection(const Run& run) const;
    [[nodiscard]] bool is_retry(const Run& run, const Releases& released) const;
    [[nodiscard]] std::uint64_t garbage_limit() const;  // of reserved bytes
    [[nodiscard]] bool is_garbage_due() const;
    [[nodiscard]] bool is_oversize_release(const Run& run) const;
    // Whether the request would have found a released segment in the cache.
    [[nodiscard]] bool would_have_hit(const Run& run) const;
    [[nodiscard]] std::uint64_t needed_segment(const Run& run, std::size_t after) const;

    const RecordedEvents& events_;
    const RecordedProgram& recorded_;
    std::unordered_map<std::uint64_t, std::uint32_t> segment_stacks_;  // by address
    bool stacks_tell_ = false;  // releases have the call stack of what caused them
    std::uint64_t reserved_ = 0;
    std::uint64_t most_reserved_ = 0;
    std::uint64_t limit_;  // of reserved bytes at the current run; 0: unknown
    std::optional<std::uint64_t> inferred_limit_;
};

}  // namespace gpuviz::replay
