#include "clients/shared_pool.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace gpuviz::clients {

using allocator::CachingAllocator;
using device::Address;
using device::StreamHandle;
using record::CallSite;

// Keeps the session alive during a call, and captures the call's origin.
class SharedPool::Call {
  public:
    explicit Call(SharedPool& pool, record::Framework framework = record::Framework::none) noexcept
        : pool_(pool), site_{.framework = framework} {
        if (pool.session_.load(std::memory_order_relaxed) == nullptr) {
            return;
        }
        // set_session() changes the session before it reads the count.
        pool.recorded_calls_.fetch_add(1);
        is_counted_ = true;
        if (record::Session* const session = pool.session_.load()) {
            site_ = session->call_site(pool.stacks_.load(), framework);
        }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        if (is_counted_) {
            pool_.recorded_calls_.fetch_sub(1);
        }
    }

    [[nodiscard]] const CallSite& site() const noexcept { return site_; }

  private:
    SharedPool& pool_;
    bool is_counted_ = false;
    CallSite site_;
};

CachingAllocator& SharedPool::opened(int device) {
    if (device < 0 || device >= record::Session::max_devices) {
        throw std::out_of_range("device " + std::to_string(device) + " is not one of the first " +
                                std::to_string(record::Session::max_devices));
    }
    std::atomic<CachingAllocator*>& known = allocators_[static_cast<std::size_t>(device)];
    CachingAllocator* allocator = known.load(std::memory_order_acquire);
    if (allocator == nullptr) [[unlikely]] {
        allocator = interpreter_.open_device(device);
        known.store(allocator, std::memory_order_release);
    }
    return *allocator;
}

CachingAllocator* SharedPool::known(int device) const noexcept {
    return device < 0 || device >= record::Session::max_devices
               ? nullptr
               : allocators_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
}

Address SharedPool::allocate(std::uint64_t size, int device, StreamHandle stream,
                             record::Framework framework) {
    if (abandoned_.load(std::memory_order_relaxed)) {
        throw std::runtime_error("CUDA cannot be used in a forked child process.");
    }
    CachingAllocator& owner = opened(device);
    const Call call(*this, framework);
    if (const auto cached = owner.try_allocate(size, stream, call.site())) {
        return *cached;
    }
    Address address = 0;
    interpreter_.run_unlocked([&] { address = owner.allocate(size, stream, call.site(), true); });
    return address;
}

// Nothing can be reported to who frees memory, and at the end of a process the driver is gone.
template <typename Action>
void SharedPool::without_exceptions(Action&& action) noexcept {
    if (abandoned_.load(std::memory_order_relaxed)) {
        return;
    }
    try {
        action();
    } catch (const std::exception&) {
        ++lost_frees_;
    }
}

void SharedPool::free_now(Address address, CachingAllocator& owner, const CallSite& site) {
    if (!owner.try_free(address, site)) {
        interpreter_.run_unlocked([&] { owner.free(address, site); });
    }
}

void SharedPool::free(Address address, int device) noexcept {
    CachingAllocator* const owner = known(device);
    if (address == 0 || owner == nullptr) {
        return;
    }
    without_exceptions([&] {
        const Call call(*this);
        free_now(address, *owner, call.site());
    });
}

void SharedPool::free_after(Address address, int device, StreamHandle last) noexcept {
    CachingAllocator* const owner = known(device);
    if (address == 0 || owner == nullptr) {
        return;
    }
    without_exceptions([&] {
        const Call call(*this);
        if (owner->try_free_after(address, last, call.site())) {
            return;
        }
        interpreter_.run_unlocked([&] {
            owner->add_stream_use(address, last);
            owner->free(address, call.site());
        });
    });
}

void SharedPool::record_stream(Address address, StreamHandle stream) noexcept {
    for (auto& each : allocators_) {
        CachingAllocator* const owner = each.load(std::memory_order_acquire);
        if (owner == nullptr) {
            continue;
        }
        without_exceptions([&] {
            const Call call(*this);
            interpreter_.run_unlocked([&] {
                if (owner->owns(address)) {
                    owner->record_stream(address, stream, call.site());
                }
            });
        });
    }
}

void SharedPool::empty_cache() noexcept {
    for (auto& each : allocators_) {
        CachingAllocator* const owner = each.load(std::memory_order_acquire);
        if (owner == nullptr) {
            continue;
        }
        without_exceptions([&] {
            const Call call(*this);
            interpreter_.run_unlocked([&] { owner->empty_cache(call.site()); });
        });
    }
}

void SharedPool::set_memory_fraction(double fraction, int device) {
    const Call call(*this);
    opened(device).set_memory_fraction(fraction, call.site());
}

void SharedPool::abandon_after_fork() noexcept {
    recorded_calls_.store(0);  // those of threads that the child does not have
    for (const auto& each : allocators_) {
        if (each.load() != nullptr) {
            abandoned_.store(true);
        }
    }
}

std::string SharedPool::describe(const allocator::OutOfMemory& error) const {
    return interpreter_.describe(error);
}

void SharedPool::set_session(record::Session* session, bool stacks) noexcept {
    stacks_.store(stacks);
    session_.store(session);
    while (recorded_calls_.load() != 0 && !abandoned_.load()) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

}  // namespace gpuviz::clients
