#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "activity/simulated_gpu.hpp"
#include "device/simulated_device.hpp"

namespace gpuviz {

// The memory of a simulated GPU for a caching allocator. Its streams and events are those of the
// GPU, which must outlive it, and what it allocates and frees are calls there.
class ScheduledDevice final : public SimulatedDevice {
  public:
    ScheduledDevice(SimulatedGpu& gpu, std::uint64_t capacity)
        : SimulatedDevice(capacity, gpu.device()), gpu_(gpu) {}

    [[nodiscard]] std::optional<Address> allocate(std::uint64_t size) override;
    void free(Address address, std::uint64_t size) override;
    [[nodiscard]] bool map(Address address, std::uint64_t size, std::uint64_t page) override;
    void unmap(Address address, std::uint64_t size, std::uint64_t page) override;

    [[nodiscard]] EventHandle record_event(StreamHandle stream) override;
    [[nodiscard]] bool is_complete(EventHandle event) override { return gpu_.is_complete(event); }
    void synchronize(EventHandle event) override;
    void release(EventHandle event) override { idle_events_.push_back(event); }
    void synchronize_stream(StreamHandle stream) override;

  private:
    SimulatedGpu& gpu_;
    std::vector<EventHandle> idle_events_;
};

}  // namespace gpuviz
