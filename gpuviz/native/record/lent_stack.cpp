#include "record/lent_stack.hpp"

namespace gpuviz::record {

void LentStack::begin(std::uint32_t stack, Work work) noexcept {
    const std::lock_guard lock(mutex_);
    ++lenders_;
    work_.store(work, std::memory_order_release);
    stack_.store(lenders_ == 1 ? stack : 0, std::memory_order_relaxed);
}

void LentStack::end() noexcept {
    const std::lock_guard lock(mutex_);
    --lenders_;
    stack_.store(0, std::memory_order_relaxed);
}

}  // namespace gpuviz::record
