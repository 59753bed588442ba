#pragma once

#include <ctime>

#include <atomic>
#include <cstdint>
#include <limits>

#include "record/clock.hpp"

namespace gpuviz::simulation {

// The time of a simulated GPU and its host, in nanoseconds on the clock of clock.hpp. Thread-safe.
class GpuClock {
  public:
    GpuClock() = default;
    GpuClock(const GpuClock&) = delete;
    GpuClock& operator=(const GpuClock&) = delete;
    virtual ~GpuClock() = default;

    [[nodiscard]] virtual std::int64_t now() const noexcept = 0;
    // Returns immediately if `time_ns` has passed.
    virtual void wait_until(std::int64_t time_ns) noexcept = 0;
    // The longest wait without checking for interrupts of the user.
    [[nodiscard]] virtual std::int64_t patience_ns() const noexcept = 0;
    // Adds the duration of something that the host did, such as a call.
    virtual void pass(std::int64_t duration_ns) noexcept = 0;
};

// Waits in real time.
class RealClock final : public GpuClock {
  public:
    [[nodiscard]] std::int64_t now() const noexcept override { return record::now_ns(); }
    void wait_until(std::int64_t time_ns) noexcept override {
        const timespec until{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
        }
    }
    [[nodiscard]] std::int64_t patience_ns() const noexcept override { return 50'000'000; }
    void pass(std::int64_t) noexcept override {}
};

// Advances only in waits and calls, so that a program finishes immediately and deterministically.
class VirtualClock final : public GpuClock {
  public:
    [[nodiscard]] std::int64_t now() const noexcept override { return now_; }
    void wait_until(std::int64_t time_ns) noexcept override {
        std::int64_t seen = now_;
        while (seen < time_ns && !now_.compare_exchange_weak(seen, time_ns)) {
        }
    }
    [[nodiscard]] std::int64_t patience_ns() const noexcept override {
        return std::numeric_limits<std::int64_t>::max() / 2;
    }
    void pass(std::int64_t duration_ns) noexcept override { now_ += duration_ns; }

  private:
    std::atomic<std::int64_t> now_{record::now_ns()};
};

}  // namespace gpuviz::simulation
