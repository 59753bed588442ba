#pragma once

#include <utility>

namespace gpuviz::record {

// Exists while an observed allocator serves a call of the program on this thread. Another observed
// allocator, from which it takes memory, then records nothing: each allocation has one event.
class ObservedCall {
  public:
    ObservedCall() noexcept : is_inner_(std::exchange(is_active_, true)) {}
    ObservedCall(const ObservedCall&) = delete;
    ObservedCall& operator=(const ObservedCall&) = delete;
    ~ObservedCall() { is_active_ = is_inner_; }

    [[nodiscard]] static bool is_active() noexcept { return is_active_; }

  private:
    static inline thread_local bool is_active_ = false;
    bool is_inner_;
};

}  // namespace gpuviz::record
