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
    std::uint64_t number;      // never used twice, unlike the handle
    GpuSchedule::Id last = 0;  // its newest work
    std::uint32_t row = 0;     // in the table `streams` of the session that records now
};

// The streams of a simulated GPU and how CUDA orders them. Not thread-safe.
//
// The legacy default stream, which has handle 0 and is always there, waits for all blocking
// streams, and they for it; non-blocking streams know nothing of it.
class GpuStreams {
  public:
    GpuStreams();

    GpuStream& create(record::StreamKind kind, int priority);
    // Its work goes on; its handle is the next to be given out.
    void destroy(device::StreamHandle handle, const GpuSchedule& schedule);

    [[nodiscard]] GpuStream* find(device::StreamHandle handle) noexcept;
    // Throws std::invalid_argument when no such stream exists.
    [[nodiscard]] GpuStream& at(device::StreamHandle handle);
    [[nodiscard]] std::map<device::StreamHandle, GpuStream>& all() noexcept { return streams_; }

    // The work after which new work of the stream comes.
    [[nodiscard]] std::vector<GpuSchedule::Id> before(const GpuStream& stream) const;
    // The work that whoever synchronizes with the stream waits for: for a blocking stream not that
    // of the default stream, which only its next work would come after.
    [[nodiscard]] std::vector<GpuSchedule::Id> pending(const GpuStream& stream) const;
    // The newest work of every stream, those that were destroyed included.
    [[nodiscard]] std::vector<GpuSchedule::Id> newest() const;

  private:
    std::map<device::StreamHandle, GpuStream> streams_;
    std::vector<GpuStream> destroyed_;  // while they have work
    std::vector<device::StreamHandle> unused_handles_;
    device::StreamHandle next_handle_;
    std::uint64_t created_ = 0;
};

}  // namespace gpuviz::simulation
