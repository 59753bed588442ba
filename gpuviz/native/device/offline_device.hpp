#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.hpp"

namespace gpuviz::device {

// A device without hardware. Its streams are idle until occupy() adds endless work to one; events
// recorded after that work complete when the stream finishes. Not thread-safe; the allocator
// serializes its calls.
class OfflineDevice : public Device {
  public:
    explicit OfflineDevice(std::uint64_t total_memory, int ordinal)
        : total_memory_(total_memory), ordinal_(ordinal) {}

    void occupy(StreamHandle stream);
    void finish(StreamHandle stream);
    void finish_all();
    [[nodiscard]] bool is_busy(StreamHandle stream) const noexcept;

    // Events recorded until release_hold() wait for complete(label), even on idle streams.
    void hold(std::uint32_t label) noexcept { held_ = label + std::uint64_t{1}; }
    void release_hold() noexcept { held_ = 0; }
    // Completes the events with this label, and those recorded before them on their streams.
    void complete(std::uint32_t label);

    // The contents of its memory, immediately; 0 where nothing was written.
    void write(Address address, std::uint64_t size, std::uint8_t value);
    [[nodiscard]] bool fill(Address address, std::uint64_t size, std::uint8_t value,
                            StreamHandle) override {
        write(address, size, value);
        return true;
    }
    [[nodiscard]] bool read(const Samples& samples, void* to, StreamHandle stream) override;
    [[nodiscard]] void* host_memory(std::uint64_t size) override;
    // Addresses without memory behind them.
    [[nodiscard]] std::optional<Address> allocate_host(std::uint64_t size) override;
    void free_host(Address address, std::uint64_t size) override;
    [[nodiscard]] std::uint64_t host_used() const noexcept { return host_used_; }
    // Rejects pinned memory beyond `bytes` in total.
    void refuse_host_beyond(std::uint64_t bytes) noexcept { most_host_used_ = bytes; }

    [[nodiscard]] int ordinal() const noexcept override { return ordinal_; }
    [[nodiscard]] std::uint64_t total_memory() const noexcept override { return total_memory_; }
    [[nodiscard]] bool has_virtual_memory() const noexcept override { return true; }
    [[nodiscard]] MemoryInfo memory_info() override {
        return {total_memory_ - used_, total_memory_};
    }

    [[nodiscard]] EventHandle record_event(StreamHandle stream) override;
    [[nodiscard]] bool is_complete(EventHandle event) override;
    void synchronize(EventHandle event) override;
    void release(EventHandle event) override;
    void synchronize_stream(StreamHandle stream) override { finish(stream); }
    [[nodiscard]] bool is_idle(StreamHandle stream) override {
        return held_ == 0 && !is_busy(stream);
    }
    [[nodiscard]] bool is_capturing(StreamHandle) override { return false; }

  protected:
    // Reserves `size` bytes of the device's memory; false if it has less.
    [[nodiscard]] bool take(std::uint64_t size) noexcept;
    void give_back(std::uint64_t size) noexcept { used_ -= size; }

  private:
    static constexpr Address first_host_address = 0x2'0000'0000;  // far below those of devices

    struct Event {
        StreamHandle stream;
        std::uint64_t label;  // 0: none, else of hold() plus 1
        bool complete;
    };

    std::uint64_t total_memory_;
    std::uint64_t used_ = 0;
    std::uint64_t held_ = 0;  // the label of new events
    int ordinal_;
    std::map<Address, std::uint8_t> contents_;  // from here on
    std::vector<std::unique_ptr<std::byte[]>> host_memory_;
    std::uint64_t host_used_ = 0;
    std::uint64_t most_host_used_ = std::numeric_limits<std::uint64_t>::max();
    Address next_host_ = first_host_address;
    std::vector<StreamHandle> busy_;
    std::vector<Event> events_;  // a handle is the index + 1
    std::vector<EventHandle> unused_events_;
    std::vector<EventHandle> pending_;
};

}  // namespace gpuviz::device
