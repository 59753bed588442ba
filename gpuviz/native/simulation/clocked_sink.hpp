#pragma once

#include "record/memory_event.hpp"
#include "simulation/gpu_clock.hpp"

namespace gpuviz::simulation {

// Forwards events with the time of a simulated GPU's clock. Both must outlive it.
class ClockedSink final : public record::MemoryEventSink {
  public:
    ClockedSink(const GpuClock& clock, record::MemoryEventSink& sink)
        : clock_(clock), sink_(sink) {}

    void push(const record::MemoryEvent& event) noexcept override {
        record::MemoryEvent timed = event;
        timed.time_ns = clock_.now();
        sink_.push(timed);
    }

  private:
    const GpuClock& clock_;
    record::MemoryEventSink& sink_;
};

}  // namespace gpuviz::simulation
