// Threads share one allocator during a recording: live blocks never overlap, every event arrives,
// and at the end nothing is allocated.
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "check.hpp"
#include "device/simulated_device.hpp"
#include "record/session.hpp"
#include "record/thread_id.hpp"

namespace {

using gpuviz::allocator::CachingAllocator;
using gpuviz::device::Address;
using gpuviz::device::StreamHandle;
using gpuviz::record::Action;
using gpuviz::record::MemoryEvent;

constexpr int thread_count = 4;
constexpr int steps = 3'000;

// Keeps all events; the allocator's lock puts them in order.
class EventList final : public gpuviz::record::MemoryEventSink {
  public:
    void push(const MemoryEvent& event) noexcept override {
        gpuviz::record::for_each_row(event, [&](const MemoryEvent& row) { events.push_back(row); });
    }

    std::vector<MemoryEvent> events;
};

Address allocate(CachingAllocator& allocator, std::uint64_t size, StreamHandle stream) {
    const gpuviz::record::CallSite site{0, gpuviz::record::current_thread_id(), 0};
    const auto found = allocator.try_allocate(size, stream, site);
    return found ? *found : allocator.allocate(size, stream, site);
}

void free(CachingAllocator& allocator, Address address) {
    const gpuviz::record::CallSite site{0, gpuviz::record::current_thread_id(), 0};
    if (!allocator.try_free(address, site)) {
        allocator.free(address, site);
    }
}

void allocate_and_free(CachingAllocator& allocator, int thread) {
    std::mt19937_64 random(static_cast<unsigned>(thread));
    std::vector<Address> held;
    for (int step = 0; step < steps; ++step) {
        if (held.size() < 8 || (held.size() < 40 && random() % 2 == 0)) {
            const std::uint64_t size = std::uint64_t{1} << random() % 22;
            held.push_back(allocate(allocator, size, StreamHandle(random() % 3)));
        } else {
            std::swap(held[random() % held.size()], held.back());
            if (random() % 4 == 0) {
                allocator.record_stream(held.back(), 9, {});
            }
            free(allocator, held.back());
            held.pop_back();
        }
    }
    for (const Address address : held) {
        free(allocator, address);
    }
}

void query_until(CachingAllocator& allocator, const std::atomic<bool>& done) {
    while (!done) {
        static_cast<void>(allocator.statistics());
        static_cast<void>(allocator.snapshot());
        static_cast<void>(allocator.owns(1234));
        allocator.empty_cache({});
    }
}

void run(CachingAllocator& allocator) {
    std::atomic<bool> done{false};
    std::thread query([&] { query_until(allocator, done); });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
        threads.emplace_back([&, thread] { allocate_and_free(allocator, thread); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    done = true;
    query.join();
}

// Returns the number of allocated blocks; none may overlap another live block.
std::uint64_t check_blocks(const std::vector<MemoryEvent>& events) {
    std::map<Address, Address> ends;
    std::uint64_t allocated = 0;
    for (const MemoryEvent& event : events) {
        if (event.action == Action::alloc) {
            const auto next = ends.lower_bound(event.address);
            CHECK_EQUAL(next == ends.end() || event.address + event.size <= next->first, true);
            CHECK_EQUAL(next == ends.begin() || std::prev(next)->second <= event.address, true);
            ends.emplace(event.address, event.address + event.size);
            ++allocated;
        } else if (event.action == Action::free_completed) {
            CHECK_EQUAL(ends.erase(event.address), 1u);
        }
    }
    CHECK_EQUAL(ends.size(), 0u);
    return allocated;
}

void blocks_of_threads_never_overlap(const char* settings) {
    gpuviz::device::SimulatedDevice device(std::uint64_t{8} << 30);
    EventList list;
    CachingAllocator allocator(device, gpuviz::allocator::Settings{}.parse(settings));
    allocator.set_event_sink(&list);
    run(allocator);
    allocator.empty_cache({});
    CHECK_EQUAL(check_blocks(list.events) > std::uint64_t{thread_count * steps / 4}, true);
    CHECK_EQUAL(device.used(), 0u);
}

void a_session_records_an_allocator_of_several_threads() {
    gpuviz::device::SimulatedDevice device(std::uint64_t{8} << 30);
    gpuviz::record::Session session({.interval = std::chrono::microseconds(500)});
    {
        CachingAllocator allocator(device, gpuviz::allocator::Settings{});
        session.start();
        allocator.set_event_sink(&session.sink(0));
        run(allocator);
        allocator.set_event_sink(nullptr);
    }
    session.stop();
    std::uint64_t rows = 0;
    for (const gpuviz::record::EventColumns& chunk : session.take(true)) {
        rows += chunk.rows();
    }
    CHECK_EQUAL(rows, session.events());
    CHECK_EQUAL(session.log().streams.all().size(), 4u);
    CHECK_EQUAL(session.dropped() == gpuviz::record::ActionCounts{}, true);
}

}  // namespace

int main() {
    blocks_of_threads_never_overlap("");
    blocks_of_threads_never_overlap("expandable_segments:True");
    a_session_records_an_allocator_of_several_threads();
}
