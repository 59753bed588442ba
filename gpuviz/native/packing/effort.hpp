#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace gpuviz::packing {

// The time that a search may take. Calls `look_up` about 20 times a second; what it throws ends the
// search.
class Effort {
  public:
    using Clock = std::chrono::steady_clock;

    Effort(Clock::time_point deadline, std::function<void()> look_up)
        : deadline_(deadline), look_up_(std::move(look_up)) {}

    // Counts the steps of about a nanosecond each that were done since the last call.
    [[nodiscard]] bool is_spent(std::uint64_t steps) {
        unseen_ += steps;
        if (unseen_ < steps_between_looks || is_spent_) return is_spent_;
        unseen_ = 0;
        const auto now = Clock::now();
        is_spent_ = now >= deadline_;
        if (now >= next_look_) {
            next_look_ = now + std::chrono::milliseconds(50);
            look_up_();
        }
        return is_spent_;
    }

  private:
    static constexpr std::uint64_t steps_between_looks = 200'000;

    Clock::time_point deadline_;
    std::function<void()> look_up_;
    Clock::time_point next_look_;
    std::uint64_t unseen_ = steps_between_looks;
    bool is_spent_ = false;
};

}  // namespace gpuviz::packing
