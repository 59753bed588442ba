#include "record/fork_safe_mutex.hpp"

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <stdexcept>
#include <vector>

namespace gpuviz::record {

// All mutexes of the process; never destroyed, because fork() may be called until the end.
class ForkSafeMutexes {
  public:
    static ForkSafeMutexes& all() {
        static auto* const mutexes = new ForkSafeMutexes;
        return *mutexes;
    }

    void add(ForkSafeMutex* mutex) {
        const std::lock_guard lock(mutex_);
        of(mutex->level_).push_back(mutex);
    }

    void remove(ForkSafeMutex* mutex) {
        const std::lock_guard lock(mutex_);
        std::erase(of(mutex->level_), mutex);
    }

  private:
    using Level = ForkSafeMutex::Level;
    static constexpr std::int64_t patience_s = 1;

    ForkSafeMutexes() {
        pthread_atfork([] { all().before_fork(); }, [] { all().after_fork(false); },
                       [] { all().after_fork(true); });
    }

    std::vector<ForkSafeMutex*>& of(Level level) {
        return level == Level::allocator ? allocators_ : devices_;
    }

    void before_fork() {
        mutex_.lock();
        timespec deadline{};
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += patience_s;
        for (ForkSafeMutex* each : allocators_) {
            each->is_held_by_fork_ =
                pthread_mutex_timedlock(each->mutex_.native_handle(), &deadline) == 0;
        }
        for (ForkSafeMutex* each : devices_) {
            each->mutex_.lock();
            each->is_held_by_fork_ = true;
        }
    }

    void after_fork(bool in_child) {
        for (std::vector<ForkSafeMutex*>* level : {&devices_, &allocators_}) {
            for (ForkSafeMutex* each : *level) {
                if (each->is_held_by_fork_) {
                    each->mutex_.unlock();
                } else if (in_child) {
                    new (&each->mutex_) std::mutex;
                    each->is_unusable_ = each->mutex_.try_lock();
                }
                each->is_held_by_fork_ = false;
            }
        }
        mutex_.unlock();
    }

    std::mutex mutex_;  // guards the rest
    std::vector<ForkSafeMutex*> allocators_;
    std::vector<ForkSafeMutex*> devices_;
};

ForkSafeMutex::ForkSafeMutex(Level level) : level_(level) { ForkSafeMutexes::all().add(this); }

ForkSafeMutex::~ForkSafeMutex() { ForkSafeMutexes::all().remove(this); }

void ForkSafeMutex::wait() {
    if (is_unusable_) {
        throw std::runtime_error(
            "This memory allocator cannot be used in this forked process: another thread was using "
            "it during the fork.");
    }
    mutex_.lock();
}

}  // namespace gpuviz::record
