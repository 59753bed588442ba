#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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

// The first row of each correlation id but 0.
class FirstRows {
  public:
    FirstRows() = default;
    explicit FirstRows(std::span<const std::uint32_t> correlations);
    [[nodiscard]] std::optional<std::size_t> of(std::uint32_t correlation) const noexcept;

  private:
    // By id, from the lowest on, where ids are dense; else pairs of id and row, sorted.
    std::uint32_t lowest_ = 0;
    std::vector<std::uint32_t> dense_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted_;
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

    // Where the gap before the next one to ask for lies; one for each lane, gaps in order of time.
    struct Place {
        std::size_t allocation = 0;
        std::unordered_map<const IntervalUnion*, std::size_t> blocked;
    };

    // Adds the causes of a gap that ended with an activity.
    void add(Interval gap, std::optional<std::size_t> activity, Place& place,
             IdleTimes& times) const;

    // Appends the parts of such a gap in order of time, neighbours of different causes; no more
    // than so many parts.
    void append_parts(Interval gap, std::optional<std::size_t> activity, std::size_t most,
                      Place& place, std::vector<IdlePart>& parts) const;

  private:
    // A part of a gap that has one cause, but for when a call allocated or a thread was blocked.
    struct Section {
        Interval time;
        IdleCause cause;
        bool may_allocate;
        // When synchronization, or else allocation, is the cause; null if it cannot be.
        const IntervalUnion* blocked;
    };
    // The sections of a gap that have a length, in order of time.
    class Sections {
      public:
        void add(Section section) noexcept {
            if (section.time.length() > 0) sections_[count_++] = section;
        }
        [[nodiscard]] const Section* begin() const noexcept { return sections_.data(); }
        [[nodiscard]] const Section* end() const noexcept { return sections_.data() + count_; }

      private:
        std::array<Section, 7> sections_;
        std::size_t count_ = 0;
    };

    [[nodiscard]] Sections sections(Interval gap, std::optional<std::size_t> activity) const;
    void add_section(const Section& section, Place& place, IdleTimes& times) const;
    void append_section(const Section& section, std::size_t most_rows, Place& place,
                        std::vector<IdlePart>& parts, std::size_t first) const;
    void find_blocked_threads(const SynchronizationRows& synchronizations);
    void find_completions(const SynchronizationRows& synchronizations);
    [[nodiscard]] std::unordered_map<std::uint32_t, LatestBefore> launched_by_stream(
        const SynchronizationRows& synchronizations) const;

    ActivityRows activities_;
    HostCallRows calls_;
    FirstRows call_rows_;
    IntervalUnion allocations_;
    // By thread: when it was blocked, or any thread allocated.
    std::unordered_map<std::uint32_t, IntervalUnion> blocked_or_allocating_;
    // By stream: when that completed which it was told to wait for.
    std::unordered_map<std::uint32_t, LatestBefore> completions_;
};

}  // namespace gpuviz::analysis
