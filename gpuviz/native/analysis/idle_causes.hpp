#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/interval_union.hpp"
#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// Why nothing ran, in ns.
struct IdleTimes {
    std::int64_t host = 0;
    std::int64_t dependency = 0;
    std::int64_t synchronization = 0;
    std::int64_t allocation = 0;
    std::int64_t unknown = 0;
};

enum class IdleCause : std::uint8_t { host, dependency, synchronization, allocation, unknown };

// A part of a gap that has one cause.
struct IdlePart {
    Interval time;
    IdleCause cause;
};

// The latest time among those that were given before a CUDA call. Correlation ids ascend in the
// order of the calls (CUPTI counts them up in a process).
class LatestBefore {
  public:
    void add(std::uint32_t correlation, std::int64_t time) {
        times_.emplace_back(correlation, time);
    }
    // To be called once, after the last add.
    void finish();
    [[nodiscard]] std::optional<std::int64_t> before(std::uint32_t correlation) const noexcept;

  private:
    std::vector<std::pair<std::uint32_t, std::int64_t>> times_;
};

// Why a GPU or a stream had nothing to do until an activity began. Each ns has the first cause of
// these that fits:
// dependency: the activity's launch call had begun, and what an event stands for that its stream
//     had been told to wait for had not completed;
// allocation: an allocating or freeing call was running, in any thread;
// synchronization: the thread that was to launch the activity was inside a blocking call;
// host: the launch call had not returned;
// unknown: all else, so also what follows the last activity, or ends with one of unknown launch.
class IdleCauses {
  public:
    IdleCauses(const ActivityRows& activities, const HostCallRows& calls,
               const SynchronizationRows& synchronizations);

    // Adds the causes of a gap that ended with an activity.
    void add(Interval gap, std::optional<std::size_t> activity, IdleTimes& times) const;

    // Appends the parts of such a gap in order of time, neighbours of different causes; no more
    // than so many parts.
    void append_parts(Interval gap, std::optional<std::size_t> activity, std::size_t most,
                      std::vector<IdlePart>& parts) const;

  private:
    // A part of a gap that has one cause, but for when a call allocated or a thread was blocked.
    struct Section {
        Interval time;
        IdleCause cause;
        bool may_allocate = true;
        // When synchronization, or else allocation, is the cause; null if it cannot be.
        const IntervalUnion* blocked = nullptr;
    };
    using Sections = std::array<Section, 7>;

    [[nodiscard]] Sections sections(Interval gap, std::optional<std::size_t> activity) const;
    void add_section(const Section& section, IdleTimes& times) const;
    // The first call with the id; calls of 0 have none.
    [[nodiscard]] std::optional<std::size_t> call_of(std::uint32_t correlation) const noexcept;
    void index_calls();
    void find_blocked_threads(const SynchronizationRows& synchronizations);
    void find_completions(const SynchronizationRows& synchronizations);
    [[nodiscard]] std::unordered_map<std::uint32_t, LatestBefore> launched_by_stream() const;

    ActivityRows activities_;
    HostCallRows calls_;
    std::vector<std::pair<std::uint32_t, std::size_t>> call_rows_;
    IntervalUnion allocations_;
    // By thread: when it was blocked, or any thread allocated.
    std::unordered_map<std::uint32_t, IntervalUnion> blocked_or_allocating_;
    // By stream: when that completed which it was told to wait for.
    std::unordered_map<std::uint32_t, LatestBefore> completions_;
};

}  // namespace gpuviz::analysis
