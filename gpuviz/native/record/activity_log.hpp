#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "record/activity_rows.hpp"
#include "record/column_log.hpp"
#include "record/sampled_cost.hpp"
#include "record/stream_table.hpp"
#include "record/string_table.hpp"

namespace gpuviz::record {

// All tables of a session except the events of allocators of device memory: a log for each table,
// and the tables that rows refer to. Thread-safe.
class ActivityLog {
  public:
    ColumnLog<ActivityRow> activities;
    ColumnLog<LaunchConfigurationRow> launch_configurations;
    ColumnLog<ApiCallRow> api_calls;
    ColumnLog<SynchronizationRow> synchronizations;
    ColumnLog<LaunchBlockRow> launch_blocks;
    ColumnLog<GraphCallRow> graph_calls;
    ColumnLog<HostMemoryEventRow> host_memory_events;
    ColumnLog<HostAccessRow> host_accesses;
    ColumnLog<MemoryOperationRow> memory_operations;
    ColumnLog<OverheadRow> overheads;
    ColumnLog<HostSampleRow> host_samples;
    ColumnLog<CollectiveRow> collectives;
    ColumnLog<TensorRow> tensors;
    ColumnLog<RangeRow> ranges;
    StringTable strings;
    StreamTable streams;
    // Of memory events, those of sinks included.
    SampledCost memory_cost;

    // Time zero, on the clock of clock.hpp. What was before it is at time zero; between
    // `await_start` and `start`, that is everything.
    void await_start() noexcept { start_ns_ = std::numeric_limits<std::int64_t>::max(); }
    void start(std::int64_t start_ns) noexcept { start_ns_ = start_ns; }
    [[nodiscard]] std::int64_t since_start(std::int64_t time_ns) const noexcept {
        const std::int64_t start_ns = start_ns_.load(std::memory_order_relaxed);
        return std::max<std::int64_t>(time_ns - start_ns, 0);
    }

    // In the child of a fork, where another thread may hold the locks of the tables for ever,
    // nothing may be appended any more.
    void abandon() noexcept { is_abandoned_ = true; }
    [[nodiscard]] bool is_abandoned() const noexcept { return is_abandoned_; }

    // The id of a launch configuration (`launch.id` is ignored); equal ones share it.
    [[nodiscard]] std::uint32_t launch_id(const LaunchConfigurationRow& launch) noexcept;

    // Counts records of GPU activities that the tracer lost.
    void count_lost(std::uint64_t records) noexcept { lost_ += records; }
    [[nodiscard]] std::uint64_t dropped() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;

    // Calls visit(name of the table, log) for each log, referenced tables first.
    template <typename Self, typename Visit>
    static void for_each_log(Self& self, Visit&& visit) {
        visit("launch_configurations", self.launch_configurations);
        visit("ranges", self.ranges);
        visit("activities", self.activities);
        visit("api_calls", self.api_calls);
        visit("synchronizations", self.synchronizations);
        visit("launch_blocks", self.launch_blocks);
        visit("graph_calls", self.graph_calls);
        visit("host_memory_events", self.host_memory_events);
        visit("host_accesses", self.host_accesses);
        visit("memory_operations", self.memory_operations);
        visit("overheads", self.overheads);
        visit("host_samples", self.host_samples);
        visit("collectives", self.collectives);
        visit("tensors", self.tensors);
    }

  private:
    struct Hash {
        std::size_t operator()(const LaunchConfigurationRow& launch) const noexcept;
    };
    struct Equal {
        bool operator()(const LaunchConfigurationRow& left,
                        const LaunchConfigurationRow& right) const noexcept;
    };

    std::atomic<std::int64_t> start_ns_{0};
    std::atomic<bool> is_abandoned_{false};
    std::atomic<std::uint64_t> lost_{0};
    std::mutex mutex_;  // guards launches_
    std::unordered_map<LaunchConfigurationRow, std::uint32_t, Hash, Equal> launches_;
};

}  // namespace gpuviz::record
