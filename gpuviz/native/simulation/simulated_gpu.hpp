#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "record/fork_safe_mutex.hpp"
#include "record/memory_event.hpp"
#include "simulation/gpu_clock.hpp"
#include "simulation/gpu_schedule.hpp"
#include "simulation/gpu_streams.hpp"
#include "simulation/simulated_records.hpp"

namespace gpuviz::simulation {

struct GpuKernel {
    std::string name;
    std::int64_t duration_ns;       // at least 1
    std::uint32_t multiprocessors;  // that it fills, 1 to GpuSchedule::multiprocessors
    record::LaunchConfigurationRow configuration{};
    std::vector<GpuAccess> accesses{};
    std::uint64_t arguments = 0;  // equal for equal other arguments; 0: unknown
};

struct GpuCopy {
    record::CopyKind kind;  // host_to_device, device_to_host or device_to_device
    std::uint64_t bytes;
    std::uint64_t source = 0;  // 0 on the host
    std::uint64_t destination = 0;
    bool pinned = true;  // the host's memory
    bool async = true;   // else on the legacy default stream, regardless of the argument
};

// A simulated GPU: implements CUDA's calls with their durations and order, and records activities
// in a session as a tracer would.
//
// Thread-safe; call without the GIL. A call that waits really waits, or advances the virtual clock.
// Unknown streams and events throw std::invalid_argument.
class SimulatedGpu {
  public:
    // Called regularly during a wait, without any lock; its exceptions end the wait.
    using Patience = std::function<void()>;

    static constexpr std::int64_t launch_latency_ns = 3000;
    static constexpr std::int64_t copy_latency_ns = 1000;    // of the engine, for each copy
    static constexpr std::int64_t allocation_ns = 50'000;    // cuMemAlloc
    static constexpr std::uint64_t staged_bytes = 64 << 10;  // pageable copies that return early
    // Bytes per nanosecond: PCIe 5 and HBM3, as measured on an H100.
    static constexpr double pinned_rate = 55;
    static constexpr double pageable_rate = 8;
    static constexpr double device_rate = 1500;
    static constexpr double fill_rate = 3000;

    SimulatedGpu(int device, std::unique_ptr<GpuClock> clock)
        : device_(device), clock_(std::move(clock)), records_(device) {}

    // Records into the session, which must be running, until detach(), which waits for all queued
    // work; if the wait is interrupted, unfinished work is not recorded.
    void attach(record::Session& session, const SimulatedTracing& tracing = {});
    void detach(const Patience& patience = nullptr);
    // Nothing is recorded while paused but the end of work that was launched before.
    void pause();
    void resume();
    // Rows of `api_calls` since attach().
    [[nodiscard]] std::uint64_t recorded_calls();
    // Ranges of the session have this GPU's times until stop_clock_of(), and then the last of them.
    void set_clock_of(record::Session& session);
    void stop_clock_of(record::Session& session);
    // To be called in the child of a fork: recording ends without waiting.
    void abandon_recording();
    // Null if there is no recording.
    [[nodiscard]] record::Session* session();
    // Who follows calls about streams, if anyone does.
    [[nodiscard]] record::StreamCalls* follower();
    // Writes the work that has ended.
    void poll() noexcept;
    [[nodiscard]] GpuClock& clock() noexcept { return *clock_; }
    [[nodiscard]] int device() const noexcept { return device_; }

    [[nodiscard]] device::StreamHandle create_stream(bool non_blocking, int priority,
                                                     const record::CallSite& site);
    void destroy_stream(device::StreamHandle stream, const record::CallSite& site);
    void synchronize_stream(device::StreamHandle stream, const record::CallSite& site,
                            const Patience& patience = nullptr);
    [[nodiscard]] bool has_stream(device::StreamHandle stream);
    [[nodiscard]] bool is_blocking(device::StreamHandle stream);
    [[nodiscard]] bool is_idle(device::StreamHandle stream);
    void synchronize_device(const record::CallSite& site, const Patience& patience = nullptr);

    [[nodiscard]] device::EventHandle create_event(const record::CallSite& site);
    void destroy_event(device::EventHandle event, const record::CallSite& site);
    void record_event(device::EventHandle event, device::StreamHandle stream,
                      const record::CallSite& site);
    // An event that was never recorded counts as complete.
    void wait_event(device::StreamHandle stream, device::EventHandle event,
                    const record::CallSite& site);
    void synchronize_event(device::EventHandle event, const record::CallSite& site,
                           const Patience& patience = nullptr);
    [[nodiscard]] bool is_complete(device::EventHandle event);

    // These throw std::invalid_argument for impossible arguments.
    void launch(device::StreamHandle stream, const GpuKernel& kernel, const record::CallSite& site);
    void copy(device::StreamHandle stream, const GpuCopy& copy, const record::CallSite& site,
              const Patience& patience = nullptr);
    void fill(device::StreamHandle stream, std::uint64_t address, std::uint64_t bytes,
              const record::CallSite& site);
    // The kernels of a graph run one after the other. A capture has a number, and so has the graph
    // that it ends as.
    [[nodiscard]] std::uint32_t begin_capture(device::StreamHandle stream,
                                              const record::CallSite& site);
    void capture(std::uint32_t capture, const GpuKernel& kernel, const record::CallSite& site);
    [[nodiscard]] std::vector<std::uint64_t> captured_addresses(std::uint32_t capture);
    [[nodiscard]] std::uint32_t end_capture(std::uint32_t capture, const record::CallSite& site);
    void destroy_graph(std::uint32_t graph, const record::CallSite& site);
    void launch_graph(device::StreamHandle stream, std::uint32_t graph,
                      const record::CallSite& site);

    // The call `name` allocated memory, or found none (address 0).
    void allocated(std::string_view name, std::uint64_t address, std::uint64_t bytes,
                   record::MemoryKind memory = record::MemoryKind::device);
    // The call `name` releases memory; with `waits` once the device is idle, unless abandoned.
    void release(std::string_view name, std::uint64_t address, std::uint64_t bytes, bool waits,
                 record::MemoryKind memory = record::MemoryKind::device);

    // From now on the GPU is used only to release memory.
    void abandon() noexcept { abandoned_ = true; }
    [[nodiscard]] bool is_abandoned() const noexcept { return abandoned_; }

  private:
    class Call;
    class FollowedCall;
    using Id = GpuSchedule::Id;

    struct Event {
        Id work = 0;
        std::uint64_t sync_id = 0;     // of the record; 0: never recorded
        std::uint64_t created_in = 0;  // a recording, or a part of one between pauses
    };
    struct Graph {
        device::StreamHandle stream = 0;  // that captured it
        std::uint32_t capture = 0;
        std::uint64_t recording = 0;  // in which all kernels were captured; 0: none
        std::vector<GpuKernel> kernels{};
        Id last = 0;
    };

    // The following require the lock.
    void catch_up();
    void wait(std::unique_lock<record::ForkSafeMutex>& lock, std::span<const Id> works,
              const Patience& patience);
    void let_pass(std::unique_lock<record::ForkSafeMutex>& lock, std::int64_t until_ns,
                  const Patience& patience);
    // A query returned success: CUPTI reports it like a wait, but it has no row of `api_calls`.
    void succeeded(record::SynchronizationKind kind, std::uint32_t stream, std::uint32_t event,
                   std::uint64_t sync_id);
    [[nodiscard]] Event& event_at(device::EventHandle event);
    // Whether a recording shows that the event was never recorded, so that waits wait for nothing.
    [[nodiscard]] bool is_empty(const Event& event) const noexcept {
        return event.sync_id == 0 && event.created_in == records_.recording();
    }
    [[nodiscard]] static Graph& at(std::map<std::uint32_t, Graph>& graphs, std::uint32_t number);
    Id add(Call& call, GpuStream& stream, const GpuWork& work, Id also_after = 0);
    Id add_kernel(Call& call, GpuStream& stream, const GpuKernel& kernel, Id also_after);
    [[nodiscard]] record::ActivityRow row_of(const Call& call, const GpuStream& stream) const;
    [[nodiscard]] record::ActivityRow row_of(const Call& call, const GpuStream& stream,
                                             const GpuKernel& kernel);
    [[nodiscard]] record::MemoryOperationRow row_of(const Call& call,
                                                    record::MemoryOperation operation,
                                                    record::MemoryKind memory,
                                                    std::uint64_t address, std::uint64_t bytes);

    int device_;
    std::unique_ptr<GpuClock> clock_;
    std::atomic<bool> abandoned_{false};
    // Guards the members below; never held while waiting.
    record::ForkSafeMutex mutex_{record::ForkSafeMutex::Level::device};
    SimulatedRecords records_;
    GpuSchedule schedule_;
    GpuStreams streams_;
    std::map<device::EventHandle, Event> events_;
    std::vector<device::EventHandle> unused_events_;
    std::map<std::uint32_t, Graph> captures_;  // open ones
    std::map<std::uint32_t, Graph> graphs_;
    std::uint32_t captures_begun_ = 0;
    std::uint32_t graphs_created_ = 0;
    std::uint64_t sync_ids_ = 0;
    std::uint32_t correlations_ = 0;
    std::vector<GpuSchedule::Ended> ended_;  // of catch_up(), kept to reuse its memory
};

}  // namespace gpuviz::simulation
