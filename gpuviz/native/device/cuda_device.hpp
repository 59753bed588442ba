#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/cuda_driver.hpp"
#include "device/device.hpp"

namespace gpuviz::device {

// A real GPU through the driver API, in the primary context, which CuPy uses as well.
//
// The allocator's lock serializes calls about memory. The destructor releases nothing, because at
// the end of a process the driver may already be unloaded; it frees everything itself.
class CudaDevice final : public Device {
  public:
    CudaDevice(std::shared_ptr<const CudaDriver> driver, int ordinal);

    [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
    [[nodiscard]] std::uint64_t total_memory() const noexcept override { return total_memory_; }
    [[nodiscard]] MemoryInfo memory_info() override;
    [[nodiscard]] std::vector<ProcessMemory> processes() override;

    [[nodiscard]] std::optional<Address> allocate(std::uint64_t size) override;
    void free(Address address, std::uint64_t size) override;

    [[nodiscard]] bool has_virtual_memory() const noexcept override { return virtual_memory_; }
    [[nodiscard]] Address reserve_range(std::uint64_t size) override;
    void release_range(Address address, std::uint64_t size) override;
    [[nodiscard]] bool map(Address address, std::uint64_t size, std::uint64_t page) override;
    void unmap(Address address, std::uint64_t size, std::uint64_t page) override;

    [[nodiscard]] bool fill(Address address, std::uint64_t size, std::uint8_t value,
                            StreamHandle stream) override;
    [[nodiscard]] bool read(const Samples& samples, void* to, StreamHandle stream) override;
    [[nodiscard]] void* host_memory(std::uint64_t size) override;
    [[nodiscard]] std::optional<Address> allocate_host(std::uint64_t size) override;
    void free_host(Address address, std::uint64_t size) override;

    [[nodiscard]] EventHandle record_event(StreamHandle stream) override;
    [[nodiscard]] bool is_complete(EventHandle event) override;
    void synchronize(EventHandle event) override;
    void release(EventHandle event) override;

    void synchronize_stream(StreamHandle stream) override;
    [[nodiscard]] bool is_idle(StreamHandle stream) override;
    [[nodiscard]] bool is_capturing(StreamHandle stream) override;
    [[nodiscard]] bool can_record(StreamHandle stream) override;
    [[nodiscard]] bool is_blocking(StreamHandle stream) override;

  private:
    class Scope;

    [[nodiscard]] CUevent idle_event();
    [[nodiscard]] bool can_enqueue(StreamHandle stream) const;
    // False if out of memory; nothing is mapped then.
    [[nodiscard]] bool map_page(Address address, std::uint64_t page);

    std::shared_ptr<const CudaDriver> driver_;
    int ordinal_;
    CUcontext context_ = nullptr;
    std::uint64_t total_memory_ = 0;
    bool virtual_memory_ = false;
    std::mutex events_mutex_;  // guards idle_events_
    std::vector<CUevent> idle_events_;
    std::unordered_map<Address, CUmemGenericAllocationHandle> pages_;
};

// gpuviz's handle of a thread's per-thread default stream. The driver uses the same handle for all
// threads (CU_STREAM_PER_THREAD), although their streams are independent.
[[nodiscard]] StreamHandle per_thread_stream(std::uint32_t thread) noexcept;

}  // namespace gpuviz::device
