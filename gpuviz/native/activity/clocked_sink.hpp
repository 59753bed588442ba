#pragma once

#include "activity/gpu_clock.hpp"
#include "record/memory_event.hpp"

namespace gpuviz {

// Passes events on with the time of a simulated GPU's clock. Both must outlive it.
class ClockedSink final : public MemoryEventSink {
  public:
    ClockedSink(const GpuClock& clock, MemoryEventSink& sink) : clock_(clock), sink_(sink) {}

    void push(const MemoryEvent& event) noexcept override {
        MemoryEvent timed = event;
        timed.time_ns = clock_.now();
        sink_.push(timed);
    }

  private:
    const GpuClock& clock_;
    MemoryEventSink& sink_;
};

}  // namespace gpuviz
