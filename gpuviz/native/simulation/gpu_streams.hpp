#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "device/device.hpp"
#include "record/stream_table.hpp"
#include "simulation/gpu_schedule.hpp"

namespace gpuviz::simulation {

// A stream of a simulated GPU.
struct GpuStream {
    device::StreamHandle handle;
    record::StreamKind kind;
    int priority;
    std::uint64_t number;      // never reused, unlike the handle
    GpuSchedule::Id last = 0;  // its newest work
    std::uint32_t row = 0;     // in the table `streams` of the current session
};

// The streams of a simulated GPU, with CUDA's order between them. Not thread-safe.
//
// The legacy default stream, which has handle 0 and always exists, and all blocking streams wait
// for each other; non-blocking streams are independent of it.
class GpuStreams {
  public:
    GpuStreams();

    GpuStream& create(record::StreamKind kind, int priority);
    // Its work continues; its handle is the next to be reused.
    void destroy(device::StreamHandle handle, const GpuSchedule& schedule);

    [[nodiscard]] GpuStream* find(device::StreamHandle handle) noexcept;
    // Throws std::invalid_argument if no such stream exists.
    [[nodiscard]] GpuStream& at(device::StreamHandle handle);
    [[nodiscard]] std::map<device::StreamHandle, GpuStream>& all() noexcept { return streams_; }

    // The dependencies of new work on the stream.
    [[nodiscard]] std::vector<GpuSchedule::Id> before(const GpuStream& stream) const;
    // The work that a synchronization with the stream waits for. For a blocking stream this
    // excludes the default stream's, on which only its later work depends.
    [[nodiscard]] std::vector<GpuSchedule::Id> pending(const GpuStream& stream) const;
    // The newest work of every stream, including destroyed ones.
    [[nodiscard]] std::vector<GpuSchedule::Id> newest() const;

  private:
    std::map<device::StreamHandle, GpuStream> streams_;
    std::vector<GpuStream> destroyed_;  // while they have work
    std::vector<device::StreamHandle> unused_handles_;
    device::StreamHandle next_handle_;
    std::uint64_t created_ = 0;
};

}  // namespace gpuviz::simulation
