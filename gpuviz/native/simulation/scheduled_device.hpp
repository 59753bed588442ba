#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/simulated_device.hpp"
#include "record/fork_safe_mutex.hpp"
#include "simulation/simulated_gpu.hpp"

namespace gpuviz::simulation {

// The memory of a simulated GPU for a caching allocator. Its streams, events and calls are those of
// the GPU, which must outlive it.
class ScheduledDevice final : public device::SimulatedDevice {
  public:
    ScheduledDevice(SimulatedGpu& gpu, std::uint64_t capacity)
        : device::SimulatedDevice(capacity, gpu.device()), gpu_(gpu) {}

    [[nodiscard]] std::optional<device::Address> allocate(std::uint64_t size) override;
    void free(device::Address address, std::uint64_t size) override;
    [[nodiscard]] bool map(device::Address address, std::uint64_t size,
                           std::uint64_t page) override;
    void unmap(device::Address address, std::uint64_t size, std::uint64_t page) override;

    [[nodiscard]] std::optional<device::Address> allocate_host(std::uint64_t size) override;
    void free_host(device::Address address, std::uint64_t size) override;

    [[nodiscard]] bool fill(device::Address address, std::uint64_t size, std::uint8_t value,
                            device::StreamHandle stream) override;
    [[nodiscard]] device::EventHandle record_event(device::StreamHandle stream) override;
    [[nodiscard]] bool is_complete(device::EventHandle event) override {
        return gpu_.is_complete(event);
    }
    void synchronize(device::EventHandle event) override;
    void release(device::EventHandle event) override;
    void synchronize_stream(device::StreamHandle stream) override;
    [[nodiscard]] bool is_idle(device::StreamHandle) override { return false; }
    [[nodiscard]] bool is_blocking(device::StreamHandle stream) override {
        return gpu_.is_blocking(stream);
    }

  private:
    [[nodiscard]] device::EventHandle idle_event();

    SimulatedGpu& gpu_;
    record::ForkSafeMutex mutex_{
        record::ForkSafeMutex::Level::device};  // of events and pinned memory
    std::vector<device::EventHandle> idle_events_;
};

}  // namespace gpuviz::simulation
