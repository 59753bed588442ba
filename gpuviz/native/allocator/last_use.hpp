#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "device/device.hpp"
#include "hazards/order.hpp"

namespace gpuviz::allocator {

// Work of a stream that uses memory of another one, and the event recorded after it.
class LastUse {
  public:
    LastUse(device::Device& device, device::StreamHandle stream, hazards::Moment moment,
            std::uint64_t epoch, std::uint32_t stack)
        : stream(stream), moment(moment), epoch(epoch), stack(stack), device_(device) {}
    LastUse(const LastUse&) = delete;
    LastUse& operator=(const LastUse&) = delete;
    ~LastUse() {
        if (event_ != 0) {
            device_.release(event_);
        }
    }

    void record() {
        event_ = device_.record_event(stream);
        number_ = next_number();
    }
    [[nodiscard]] bool is_recorded() const noexcept { return number_ != unrecorded; }
    // Only if recorded.
    [[nodiscard]] device::EventHandle event() const noexcept { return event_; }
    // Grows in the order in which events are recorded.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] static std::uint64_t next_number() noexcept {
        static std::atomic<std::uint64_t> numbers{0};
        return ++numbers;
    }

    static constexpr std::uint64_t unrecorded = std::numeric_limits<std::uint64_t>::max();

    const device::StreamHandle stream;
    const hazards::Moment moment;
    const std::uint64_t epoch;  // of the tracker; `moment` means nothing in another one
    const std::uint32_t stack;  // of the call

  private:
    device::Device& device_;
    device::EventHandle event_ = 0;
    std::atomic<std::uint64_t> number_{unrecorded};
};

}  // namespace gpuviz::allocator
