// Threads use pools of one allocator on a small device and hold what graphs would use, while
// another reads its state and changes its settings: allocations never exceed the device's memory,
// and all of it is returned.
#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "check.hpp"
#include "device/simulated_device.hpp"
#include "replay/event_log.hpp"

namespace {

using gpuviz::allocator::CachingAllocator;
using gpuviz::device::Address;
using gpuviz::device::StreamHandle;
using gpuviz::record::CallSite;

constexpr std::uint64_t kCapacity = std::uint64_t{1} << 30;
constexpr int kThreads = 4;
constexpr int kOperations = 20'000;
constexpr std::size_t kLive = 64;

Address allocate(CachingAllocator& allocator, std::uint64_t size, StreamHandle stream,
                 const CallSite& site) {
    if (const auto address = allocator.try_allocate(size, stream, site)) {
        return *address;
    }
    try {
        return allocator.allocate(size, stream, site, true);
    } catch (const gpuviz::allocator::OutOfMemory&) {
        return 0;
    }
}

void free(CachingAllocator& allocator, Address address, const CallSite& site) {
    if (address != 0 && !allocator.try_free(address, site)) {
        allocator.free(address, site);
    }
}

void use(CachingAllocator& allocator, std::uint32_t thread) {
    std::mt19937 random(thread);
    const CallSite site{.stack = thread, .thread = thread};
    const std::uint64_t pool = allocator.create_pool();
    std::vector<Address> live(kLive, 0);
    std::vector<std::uint64_t> holds;
    for (int operation = 0; operation < kOperations; ++operation) {
        const bool in_pool = random() % 16 == 0;
        if (in_pool) {
            allocator.begin_pool(pool, gpuviz::allocator::PoolFilter::this_thread);
        }
        Address& slot = live[random() % kLive];
        free(allocator, slot, site);
        const std::uint64_t size = std::uint64_t{1} << (random() % 25);
        slot = allocate(allocator, size + random() % size, thread % 2, site);
        if (slot != 0 && random() % 8 == 0) {
            allocator.record_stream(slot, 7, site);
        }
        if (in_pool) {
            allocator.end_pool(pool);
        }
        if (random() % 512 == 0) {
            allocator.empty_cache(site);
        }
        if (random() % 1024 == 0) {
            holds.push_back(allocator.hold_allocated(pool));
            free(allocator, std::exchange(live[0], 0), site);
            allocator.keep_used(holds.back(), {live[1] + 1, live[2], thread}, site);
        }
        if (holds.size() > 2) {
            allocator.release_hold(holds.front(), site);
            holds.erase(holds.begin());
        }
    }
    for (const std::uint64_t hold : holds) {
        allocator.release_hold(hold, site);
    }
    for (const Address address : live) {
        free(allocator, address, site);
    }
    allocator.release_pool(pool, site);
}

void watch(CachingAllocator& allocator, const std::atomic<bool>& done) {
    while (!done) {
        std::uint64_t total = 0;
        for (const gpuviz::allocator::SnapshotSegment& segment : allocator.snapshot()) {
            total += segment.total_size;
        }
        const auto peak = allocator.statistics().reserved_bytes.peak;
        CHECK_EQUAL(total <= kCapacity, true);
        CHECK_EQUAL(peak <= static_cast<std::int64_t>(kCapacity), true);
        allocator.apply_settings(allocator.settings().parse("max_split_size_mb:20"));
        std::this_thread::yield();
    }
}

}  // namespace

int main() {
    gpuviz::device::SimulatedDevice device(kCapacity);
    gpuviz::replay::EventLog log;
    {
        CachingAllocator allocator(device, gpuviz::allocator::Settings{});
        allocator.set_event_sink(&log);
        std::atomic<bool> done = false;
        std::thread watcher(watch, std::ref(allocator), std::cref(done));
        std::vector<std::thread> users;
        for (std::uint32_t thread = 1; thread <= kThreads; ++thread) {
            users.emplace_back(use, std::ref(allocator), thread);
        }
        for (std::thread& user : users) {
            user.join();
        }
        done = true;
        watcher.join();
        allocator.empty_cache({});
        CHECK_EQUAL(allocator.statistics().active.current(), 0);
    }
    CHECK_EQUAL(device.used(), 0u);
    CHECK_EQUAL(log.events().size() > kOperations, true);
}
