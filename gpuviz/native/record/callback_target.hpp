#pragma once

#include <atomic>
#include <thread>

namespace gpuviz::record {

// The object that the callbacks of another library use, from any thread, while a recording runs.
// Such a library calls without user data, and may call during exit: it is never deleted.
template <typename Target>
class CallbackTarget {
  public:
    void set(Target& target) noexcept { target_ = &target; }
    // Waits until no callback uses the target.
    void clear() noexcept {
        target_ = nullptr;
        while (uses_ != 0) {
            std::this_thread::yield();
        }
    }
    // In the child after fork(), where the threads that used the target do not exist.
    void abandon_after_fork() noexcept {
        target_ = nullptr;
        uses_ = 0;
    }

    // Keeps the target valid during a callback; false without one.
    class Use {
      public:
        explicit Use(CallbackTarget& owner) noexcept : owner_(owner) {
            if (owner_.target_.load(std::memory_order_relaxed) != nullptr) {
                is_counted_ = true;
                ++owner_.uses_;
                target_ = owner_.target_;
            }
        }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        ~Use() {
            if (is_counted_) {
                --owner_.uses_;
            }
        }

        explicit operator bool() const noexcept { return target_ != nullptr; }
        Target* operator->() const noexcept { return target_; }

      private:
        CallbackTarget& owner_;
        bool is_counted_ = false;
        Target* target_ = nullptr;
    };

  private:
    std::atomic<Target*> target_{nullptr};
    std::atomic<int> uses_{0};
};

}  // namespace gpuviz::record
