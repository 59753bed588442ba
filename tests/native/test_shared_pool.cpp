// Threads allocate and free through torch's functions while recordings begin and end: none is used
// after its end, every free succeeds, and a request that fails throws.
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "check.hpp"
#include "clients/shared_pool.hpp"
#include "clients/torch_functions.hpp"
#include "device/simulated_device.hpp"
#include "record/session.hpp"

namespace {

using namespace gpuviz::clients;
using gpuviz::allocator::CachingAllocator;
using gpuviz::device::SimulatedDevice;
using gpuviz::record::Session;

constexpr std::uint64_t capacity = std::uint64_t{1} << 30;
constexpr int thread_count = 4;
constexpr int steps = 3'000;

void* const other_stream = reinterpret_cast<void*>(0x70);

void allocate_and_free(int thread) {
    std::mt19937_64 random(static_cast<unsigned>(thread));
    std::vector<void*> held;
    for (int step = 0; step < steps; ++step) {
        if (held.size() < 8 || (held.size() < 40 && random() % 2 == 0)) {
            const std::size_t size = 1 + random() % 20'000;
            held.push_back(gpuviz_torch_malloc(size, 0, nullptr));
            CHECK_EQUAL(held.back() != nullptr, true);
        } else {
            if (random() % 4 == 0) {
                gpuviz_torch_record_stream(held.back(), other_stream);
            }
            gpuviz_torch_free(held.back(), 0, 0, nullptr);
            held.pop_back();
        }
        if (random() % 500 == 0) {
            gpuviz_torch_empty_cache();
        }
    }
    for (void* const each : held) {
        gpuviz_torch_free(each, 0, 0, nullptr);
    }
}

void record_until(SharedPool& pool, CachingAllocator& allocator, const std::atomic<bool>& done) {
    while (!done) {
        auto session = std::make_unique<Session>(gpuviz::record::SessionOptions{});
        session->start();
        allocator.set_event_sink(&session->sink(0));
        pool.set_session(session.get(), true);
        std::this_thread::yield();
        pool.set_session(nullptr, true);
        allocator.set_event_sink(nullptr);
        session->stop();
    }
}

void check_failure(SharedPool& pool) {
    std::string text;
    try {
        gpuviz_torch_malloc(2 * capacity, 0, nullptr);
    } catch (const std::runtime_error& error) {
        text = error.what();
    }
    CHECK_EQUAL(text, "described");  // no torch in this process, so none of its types
    CHECK_EQUAL(pool.lost_frees(), 0u);
}

}  // namespace

int main() {
    try {
        gpuviz_torch_malloc(1, 0, nullptr);
        CHECK_EQUAL("no exception", "");
    } catch (const std::runtime_error& error) {
        CHECK_EQUAL(std::strstr(error.what(), "install()") != nullptr, true);
    }
    gpuviz_torch_free(reinterpret_cast<void*>(0x200), 1, 0, nullptr);

    SimulatedDevice device(capacity);
    CachingAllocator allocator(device, {});
    SharedPool pool({.open_device = [&](int) { return &allocator; },
                     .run_unlocked = [](const std::function<void()>& call) { call(); },
                     .describe = [](const auto&) { return std::string("described"); }});
    serve_torch(pool);

    std::atomic<bool> done{false};
    std::thread recordings([&] { record_until(pool, allocator, done); });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
        threads.emplace_back(allocate_and_free, thread);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    done = true;
    recordings.join();

    gpuviz_torch_empty_cache();
    CHECK_EQUAL(allocator.statistics().allocation.current(), 0);
    CHECK_EQUAL(device.used(), 0u);
    CHECK_EQUAL(pool.lost_frees(), 0u);
    check_failure(pool);
    return 0;
}
