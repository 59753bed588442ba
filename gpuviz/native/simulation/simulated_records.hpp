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

// What kernels, copies and memsets do with a place in memory.
struct GpuAccess {
    std::uint64_t address;
    record::AccessMode mode;
};

// What is recorded of a simulated GPU.
struct SimulatedTracing {
    bool launch_sites = true;  // a row for each call that launches, copies, waits or allocates
    bool api_calls = false;    // and for all other calls
    bool graph_nodes = true;   // the kernels of a graph one by one, else each launch as a whole
};

// The rows of a simulated GPU in the tables of the session that records it, if one does. Work is
// written when it has ended, as a tracer would. Not thread-safe.
class SimulatedRecords {
  public:
    explicit SimulatedRecords(int device) : device_(device) {}

    // Null ends it, and forgets the work that has not ended.
    void attach(record::Session* session, std::map<device::StreamHandle, GpuStream>& streams,
                const SimulatedTracing& tracing = {});
    [[nodiscard]] bool graph_nodes() const noexcept { return tracing_.graph_nodes; }
    [[nodiscard]] record::Session* session() const noexcept { return session_; }
    // Changes with every attach().
    [[nodiscard]] std::uint64_t recording() const noexcept { return recording_; }

    void stream_created(GpuStream& stream, std::int64_t time_ns);
    void stream_destroyed(const GpuStream& stream, std::int64_t time_ns);

    // Rows whose times are those of the work.
    void expect(GpuSchedule::Id work, const record::ActivityRow& row);
    void expect(GpuSchedule::Id work, const record::SynchronizationRow& row);
    // The same for work from the beginning of one to the end of another.
    void expect(GpuSchedule::Id first, GpuSchedule::Id last, const record::ActivityRow& row);
    void write(std::span<const GpuSchedule::Ended> ended) noexcept;

    // Rows whose times are on the clock of clock.hpp still.
    void call(std::string_view name, record::ApiCallRow row) noexcept;
    void synchronization(record::SynchronizationRow row) noexcept;
    void memory_operation(record::MemoryOperationRow row) noexcept;
    void touch(std::span<const GpuAccess> accesses, std::uint32_t correlation,
               std::int64_t time_ns);

    // Ids of names and launches; 0 while nothing records.
    [[nodiscard]] std::uint32_t name_id(std::string_view name) noexcept;
    [[nodiscard]] std::uint32_t launch_id(const record::LaunchConfigurationRow& launch) noexcept;

  private:
    using Row = std::variant<record::ActivityRow, record::SynchronizationRow>;

    void describe(GpuStream& stream, std::int64_t created);

    int device_;
    SimulatedTracing tracing_;
    record::Session* session_ = nullptr;
    std::uint64_t recording_ = 0;
    std::unordered_map<GpuSchedule::Id, Row> expected_;
    std::unordered_map<GpuSchedule::Id, GpuSchedule::Id> last_of_;  // by the first
    std::unordered_map<GpuSchedule::Id, std::int64_t> begun_;       // by the last
};

}  // namespace gpuviz::simulation
