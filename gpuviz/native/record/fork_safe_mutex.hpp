#pragma once

#include <cstdint>
#include <mutex>

namespace gpuviz::record {

// A mutex whose state remains usable in a child made by fork(): the forking thread holds all of
// them during the fork, so that no other thread is in the middle of a change. A thread that holds
// one must not request the GIL, which the forking thread holds.
class ForkSafeMutex {
  public:
    // A thread that holds a device's mutex never requests an allocator's.
    enum class Level : std::uint8_t {
        allocator,  // may be held while the GPU works; see lock()
        device,     // held for moments only
    };

    explicit ForkSafeMutex(Level level);
    ForkSafeMutex(const ForkSafeMutex&) = delete;
    ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
    ~ForkSafeMutex();

    // Throws std::runtime_error in the child of a fork during which another thread held an
    // allocator's mutex for too long: what it guards may be incomplete.
    void lock() {
        if (!mutex_.try_lock()) {
            wait();
        }
    }
    [[nodiscard]] bool try_lock() noexcept { return mutex_.try_lock(); }
    void unlock() noexcept { mutex_.unlock(); }

  private:
    friend class ForkSafeMutexes;

    void wait();

    std::mutex mutex_;
    Level level_;
    bool is_held_by_fork_ = false;
    bool is_unusable_ = false;  // and locked, until the process ends
};

}  // namespace gpuviz::record
