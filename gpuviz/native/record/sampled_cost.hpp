#pragma once

#include <atomic>
#include <cstdint>

#include "record/clock.hpp"

namespace gpuviz::record {

// How long recording takes in the threads of the program, as one of `every` calls is timed.
//
// Thread-safe.
class SampledCost {
  public:
    // A prime, so that calls which take turns are timed equally often.
    static constexpr unsigned every = 17;

    // A part of recording, until the object's end; a part of it belongs to it.
    class Call {
      public:
        explicit Call(SampledCost& cost) noexcept : cost_(cost), is_outermost_(!of_thread_.inside) {
            if (is_outermost_) {
                of_thread_.inside = true;
                if (of_thread_.calls == 0) {
                    // Otherwise short threads would never be timed.
                    of_thread_.calls = threads_.fetch_add(1, std::memory_order_relaxed) % every;
                }
                if (++of_thread_.calls % every == 0) {
                    began_ns_ = now_ns();
                }
            }
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call() {
            if (is_outermost_) {
                of_thread_.inside = false;
                if (began_ns_ != 0) {
                    cost_.sampled_ns_.fetch_add(now_ns() - began_ns_, std::memory_order_relaxed);
                }
            }
        }

      private:
        struct OfThread {
            unsigned calls;
            bool inside;
        };
        static inline thread_local constinit OfThread of_thread_{};
        static inline constinit std::atomic<unsigned> threads_{0};

        SampledCost& cost_;
        bool is_outermost_;
        std::int64_t began_ns_ = 0;
    };

    // An estimate for all calls.
    [[nodiscard]] std::int64_t ns() const noexcept {
        return every * sampled_ns_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<std::int64_t> sampled_ns_{0};
};

}  // namespace gpuviz::record
