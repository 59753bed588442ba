#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/simulated_device.hpp"
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

    [[nodiscard]] device::EventHandle record_event(device::StreamHandle stream) override;
    [[nodiscard]] bool is_complete(device::EventHandle event) override {
        return gpu_.is_complete(event);
    }
    void synchronize(device::EventHandle event) override;
    void release(device::EventHandle event) override { idle_events_.push_back(event); }
    void synchronize_stream(device::StreamHandle stream) override;

  private:
    SimulatedGpu& gpu_;
    std::vector<device::EventHandle> idle_events_;
};

}  // namespace gpuviz::simulation
