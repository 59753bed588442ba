#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "record/memory_event.hpp"
#include "record/session.hpp"
#include "simulation/gpu_schedule.hpp"
#include "simulation/gpu_streams.hpp"

namespace gpuviz::simulation {

// An access of a kernel, copy or memset to memory.
struct GpuAccess {
    std::uint64_t address;
    record::AccessMode mode;
};

// Options for recording a simulated GPU.
struct SimulatedTracing {
    bool launch_sites = true;  // a row for each call that launches, copies, waits or allocates
    bool api_calls = false;    // rows for all other calls as well
    bool graph_nodes = true;   // the kernels of a graph one by one, else each launch as a whole
};

// Writes the rows of a simulated GPU to the current session, if any. As with a tracer, work is
// written when it has ended. Not thread-safe.
class SimulatedRecords {
  public:
    explicit SimulatedRecords(int device) : device_(device) {}

    // Null ends the recording, and discards unfinished work.
    void attach(record::Session* session, std::map<device::StreamHandle, GpuStream>& streams,
                const SimulatedTracing& tracing = {});
    // While paused, only work that was launched before is written. What was begun before or while
    // it is paused belongs to another recording().
    void pause(bool is_paused, std::map<device::StreamHandle, GpuStream>& streams);
    [[nodiscard]] bool graph_nodes() const noexcept { return tracing_.graph_nodes; }
    [[nodiscard]] record::Session* session() const noexcept { return session_; }
    // Null if nobody samples the host.
    [[nodiscard]] record::HostSampler* host_sampler() const noexcept {
        return is_recording() ? session_->host_sampler() : nullptr;
    }
    // Rows of `api_calls` so far.
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
    // Changes with every attach() and pause().
    [[nodiscard]] std::uint64_t recording() const noexcept { return recording_; }

    void stream_created(GpuStream& stream, std::int64_t time_ns);
    void stream_destroyed(const GpuStream& stream, std::int64_t time_ns);

    // Adds a row with the times of the work.
    void expect(GpuSchedule::Id work, const record::ActivityRow& row);
    void expect(GpuSchedule::Id work, const record::SynchronizationRow& row);
    // Adds a row from the start of the first to the end of the last work.
    void expect(GpuSchedule::Id first, GpuSchedule::Id last, const record::ActivityRow& row);
    void write(std::span<const GpuSchedule::Ended> ended) noexcept;

    // Add rows whose times are on the clock of clock.hpp.
    void call(std::string_view name, record::ApiCallRow row) noexcept;
    void synchronization(record::SynchronizationRow row) noexcept;
    void graph_call(const record::GraphCallRow& row) noexcept;
    void memory_operation(record::MemoryOperationRow row) noexcept;
    void touch(std::span<const GpuAccess> accesses, std::uint32_t correlation, std::int64_t time_ns,
               std::uint64_t content = 0);

    // Ids of names and launches; 0 without a recording.
    [[nodiscard]] std::uint32_t name_id(std::string_view name) noexcept;
    [[nodiscard]] std::uint32_t launch_id(const record::LaunchConfigurationRow& launch) noexcept;

  private:
    using Row = std::variant<record::ActivityRow, record::SynchronizationRow>;

    void describe(GpuStream& stream, std::int64_t created);
    [[nodiscard]] bool is_recording() const noexcept { return session_ != nullptr && !is_paused_; }

    int device_;
    SimulatedTracing tracing_;
    bool is_paused_ = false;
    std::uint64_t calls_ = 0;
    record::Session* session_ = nullptr;
    std::uint64_t recording_ = 0;
    std::unordered_map<GpuSchedule::Id, Row> expected_;
    std::unordered_map<GpuSchedule::Id, GpuSchedule::Id> last_of_;  // by the first
    std::unordered_map<GpuSchedule::Id, std::int64_t> begun_;       // by the last
};

}  // namespace gpuviz::simulation
