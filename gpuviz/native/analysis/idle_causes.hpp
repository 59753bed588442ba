#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/first_rows.hpp"
#include "analysis/interval_union.hpp"
#include "analysis/lanes.hpp"
#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// Idle time by cause, in ns.
struct IdleTimes {
    std::int64_t host = 0;
    std::int64_t dependency = 0;
    std::int64_t synchronization = 0;
    std::int64_t allocation = 0;
    std::int64_t unrecorded_event = 0;
    std::int64_t gpu_busy = 0;
    std::int64_t unknown = 0;
};

// A part of a gap with one cause.
struct IdlePart {
    Interval time;
    IdleCause cause;
};

// The latest of the times that precede a CUDA call. Calls are ordered by correlation id, which
// CUPTI increments within a process.
class LatestBefore {
  public:
    void reserve(std::size_t count) { times_.reserve(times_.size() + count); }
    void add(std::uint32_t correlation, std::int64_t time) {
        times_.emplace_back(correlation, time);
    }
    // To be called once, after the last add().
    void finish();
    // A query is faster the closer it is to the previous query with the same cursor, which starts
    // at 0.
    [[nodiscard]] std::optional<std::int64_t> before(std::uint32_t correlation,
                                                     std::size_t& cursor) const noexcept;

  private:
    std::vector<std::pair<std::uint32_t, std::int64_t>> times_;
};

// The causes of idle time of a GPU or a stream until an activity began. Each ns has the first of
// these causes that applies:
// dependency: the activity's launch call had begun, and an event that its stream had to wait for
//     had not completed;
// allocation: an allocating or freeing call was running, in any thread;
// synchronization: the thread that launched the activity was inside a blocking call;
// host: the launch call had not returned;
// unrecorded_event: the activity is the first one that its stream launched after a wait for an
// event
//     whose record is not in the recording;
// gpu_busy: another stream's activity that competes with this one ran on the device. Copies compete
//     with copies, everything else with everything else;
// unknown: everything else, including idle time after the last activity, or before an activity with
//     an unknown launch.
class IdleCauses {
  public:
    IdleCauses(const ActivityRows& activities, const HostCallRows& calls,
               const SynchronizationRows& synchronizations);

    // The lanes of the activities.
    [[nodiscard]] const std::vector<LaneRows>& lanes() const noexcept { return lanes_; }

    // Cursors into objects of one type; fast while they are of the same object.
    template <typename Object>
    class Cursors {
      public:
        std::size_t& of(const Object* found) {
            if (found != last_) {
                cursor_ = &cursors_[found];
                last_ = found;
            }
            return *cursor_;
        }

      private:
        const Object* last_ = nullptr;
        std::size_t* cursor_ = nullptr;
        std::unordered_map<const Object*, std::size_t> cursors_;
    };

    // Looks up values of a map, which must not change; fast while the key is the same.
    template <typename Key, typename Value>
    class Lookup {
      public:
        // Null if there is none.
        const Value* of(const std::unordered_map<Key, Value>& map, Key key) {
            if (!known_ || key != key_) {
                const auto found = map.find(key);
                value_ = found == map.end() ? nullptr : &found->second;
                key_ = key;
                known_ = true;
            }
            return value_;
        }

      private:
        bool known_ = false;
        Key key_{};
        const Value* value_ = nullptr;
    };

    // The times of activities that compete with copies, and with everything else.
    using BusyTimes = std::array<IntervalUnion, 2>;

    // Cursors into the inputs, at the last gap; one for each lane, with gaps in order of time.
    struct Place {
        std::size_t allocation = 0;
        Cursors<IntervalUnion> blocked;
        Cursors<IntervalUnion> busy;
        Cursors<LatestBefore> completion;
        Lookup<std::uint32_t, LatestBefore> completions;
        Lookup<std::uint32_t, IntervalUnion> threads;
        Lookup<std::int16_t, BusyTimes> devices;
        Lookup<std::uint32_t, std::vector<std::uint32_t>> unrecorded;

        Cursors<IntervalUnion>& of(IdleCause cause) {
            return cause == IdleCause::gpu_busy ? busy : blocked;
        }
    };

    // Adds the causes of a gap that an activity ended.
    void add(Interval gap, std::optional<std::size_t> activity, Place& place,
             IdleTimes& times) const;

    // Appends the parts of such a gap in order of time, at most `most`; adjacent parts have
    // different causes.
    void append_parts(Interval gap, std::optional<std::size_t> activity, std::size_t most,
                      Place& place, std::vector<IdlePart>& parts) const;

  private:
    // A part of a gap with one cause, except while a call allocated or a thread was blocked.
    struct Section {
        Interval time;
        IdleCause cause;
        bool may_allocate = true;
        // The times when `other_cause` or allocation is the cause; null if neither can be.
        const IntervalUnion* other = nullptr;
        IdleCause other_cause = IdleCause::synchronization;
    };

    // Calls `visit` with each non-empty section of a gap, in order of time.
    template <typename Visit>
    void for_each_section(Interval gap, std::optional<std::size_t> activity, Place& place,
                          Visit&& visit) const;
    void add_section(const Section& section, Place& place, IdleTimes& times) const;
    void append_section(const Section& section, std::size_t most_rows, Place& place,
                        std::vector<IdlePart>& parts, std::size_t first) const;
    // The section from the return of the launch call on.
    [[nodiscard]] Section launched(Interval time, std::size_t activity, Place& place) const;
    [[nodiscard]] bool waits_for_unrecorded_event(std::size_t activity, Place& place) const;
    void find_blocked_threads(const SynchronizationRows& synchronizations);
    void find_busy_times();
    void find_completions(const SynchronizationRows& synchronizations);
    void find_launches_after_unrecorded_events();

    ActivityRows activities_;
    HostCallRows calls_;
    std::vector<LaneRows> lanes_;
    FirstRows<std::uint32_t> call_rows_;
    IntervalUnion allocations_;
    // By thread: the times when it was blocked, or any thread allocated.
    std::unordered_map<std::uint32_t, IntervalUnion> blocked_or_allocating_;
    // By device, for copies and for everything else: the times when such an activity ran, or any
    // thread allocated. Only for devices with several streams.
    std::unordered_map<std::int16_t, BusyTimes> busy_or_allocating_;
    // By stream: the completion times of the events that it had to wait for.
    std::unordered_map<std::uint32_t, LatestBefore> completions_;
    // By stream: the calls that waited for an event without a record, and the first launches after.
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> unrecorded_waits_;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> launches_after_unrecorded_;
};

}  // namespace gpuviz::analysis
