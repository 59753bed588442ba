#pragma once

#include <ctime>

#include <atomic>
#include <cstdint>
#include <limits>

#include "record/clock.hpp"

namespace gpuviz::simulation {

// The time that a simulated GPU and its host share, in nanoseconds on the clock of clock.hpp.
// Any thread.
class GpuClock {
  public:
    GpuClock() = default;
    GpuClock(const GpuClock&) = delete;
    GpuClock& operator=(const GpuClock&) = delete;
    virtual ~GpuClock() = default;

    [[nodiscard]] virtual std::int64_t now() const noexcept = 0;
    // Returns at once when `time_ns` has passed.
    virtual void wait_until(std::int64_t time_ns) noexcept = 0;
    // The longest wait after which a person may want to be asked.
    [[nodiscard]] virtual std::int64_t patience_ns() const noexcept = 0;
    // The host has made a CUDA call, which takes a moment.
    virtual void end_call() noexcept = 0;
};

// Waits as a real GPU lets a host wait.
class RealClock final : public GpuClock {
  public:
    [[nodiscard]] std::int64_t now() const noexcept override { return record::now_ns(); }
    void wait_until(std::int64_t time_ns) noexcept override {
        const timespec until{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
        }
    }
    [[nodiscard]] std::int64_t patience_ns() const noexcept override { return 50'000'000; }
    void end_call() noexcept override {}
};

// Stands still but for waits and calls, so that a program takes no time and always gives the same.
class VirtualClock final : public GpuClock {
  public:
    static constexpr std::int64_t call_ns = 1000;

    [[nodiscard]] std::int64_t now() const noexcept override { return now_; }
    void wait_until(std::int64_t time_ns) noexcept override {
        std::int64_t seen = now_;
        while (seen < time_ns && !now_.compare_exchange_weak(seen, time_ns)) {
        }
    }
    [[nodiscard]] std::int64_t patience_ns() const noexcept override {
        return std::numeric_limits<std::int64_t>::max() / 2;
    }
    void end_call() noexcept override { now_ += call_ns; }

  private:
    std::atomic<std::int64_t> now_{record::now_ns()};
};

}  // namespace gpuviz::simulation
