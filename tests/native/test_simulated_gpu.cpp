// Threads submit work to one simulated GPU, wait for it and allocate memory, while recordings begin
// and end, each other one with the reuse of memory delayed until other streams have used it; all
// recorded work has ended, in the order of its stream.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "check.hpp"
#include "record/clock.hpp"
#include "record/session.hpp"
#include "record/thread_id.hpp"
#include "simulation/scheduled_device.hpp"
#include "simulation/simulated_gpu.hpp"

namespace {

using namespace gpuviz;
using allocator::CachingAllocator;
using device::EventHandle;
using device::StreamHandle;
using record::CallSite;
using record::Session;
using simulation::ScheduledDevice;
using simulation::SimulatedGpu;

constexpr int threads = 3;
constexpr int steps = 300;

void use(SimulatedGpu& gpu, CachingAllocator& allocator, int number) {
    const CallSite site{.thread = record::current_thread_id()};
    const EventHandle event = gpu.create_event(site);
    for (int step = 0; step < steps; ++step) {
        const StreamHandle stream = gpu.create_stream(step % 2 == 0, number, site);
        const device::Address block = allocator.allocate(1 << 20, stream, site);
        gpu.launch(stream,
                   {.name = "kernel",
                    .duration_ns = 1000 * (number + 1),
                    .multiprocessors = 40,
                    .accesses = {{block, record::AccessMode::write}}},
                   site);
        gpu.fill(0, block, 1 << 20, site);
        gpu.record_event(event, stream, site);
        gpu.wait_event(0, event, site);
        gpu.copy(stream,
                 {.kind = record::CopyKind::device_to_host, .bytes = 1 << 16, .source = block},
                 site);
        if (step % 2 == 0) {
            allocator.record_stream(block, 0, site);
        }
        allocator.free(block, site);
        if (step % 20 == 0) {
            gpu.synchronize_event(event, site);
            gpu.synchronize_stream(stream, site);
        }
        gpu.destroy_stream(stream, site);
    }
    gpu.synchronize_device(site);
    gpu.destroy_event(event, site);
}

// Returns the number of activities.
std::uint64_t check_rows(Session& session, std::int64_t until) {
    std::map<std::uint32_t, std::int64_t> free_since;
    std::uint64_t rows = 0;
    for (const auto& chunk : session.log().activities.take(true)) {
        const std::int64_t* time = nullptr;
        const std::int64_t* end = nullptr;
        const std::uint32_t* stream = nullptr;
        chunk.for_each_column([&](std::string_view name, const auto* values) {
            if constexpr (std::is_same_v<decltype(values), const std::int64_t*>) {
                time = name == "time" ? values : time;
                end = name == "end" ? values : end;
            } else if constexpr (std::is_same_v<decltype(values), const std::uint32_t*>) {
                stream = name == "stream" ? values : stream;
            }
        });
        for (std::size_t at = 0; at < chunk.rows(); ++at, ++rows) {
            CHECK_EQUAL(time[at] >= free_since[stream[at]], true);
            CHECK_EQUAL(time[at] < end[at] && end[at] <= until, true);
            free_since[stream[at]] = end[at];
        }
    }
    return rows;
}

std::uint64_t record_once(SimulatedGpu& gpu, CachingAllocator& allocator, bool tracks_uses) {
    Session session({.launch_blocks = true});
    session.start();
    if (tracks_uses) {
        session.set_stream_calls(
            0, &allocator.track_uses(allocator::UseTracking::delay, true, record::now_ns));
    }
    gpu.attach(session);
    allocator.set_event_sink(&session.sink(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    static_cast<void>(session.take(true));
    gpu.detach();
    static_cast<void>(allocator.stop_tracking_uses());
    allocator.set_event_sink(nullptr);
    session.stop();
    return check_rows(session, record::now_ns() - session.start_ns());
}

}  // namespace

int main() {
    SimulatedGpu gpu(0, std::make_unique<simulation::RealClock>());
    ScheduledDevice device(gpu, std::uint64_t{1} << 30);
    CachingAllocator allocator(device, allocator::Settings{});
    std::atomic<int> running = threads;
    std::vector<std::thread> users;
    for (int number = 0; number < threads; ++number) {
        users.emplace_back([&, number] {
            use(gpu, allocator, number);
            --running;
        });
    }
    std::uint64_t rows = 0;
    for (bool tracks_uses = false; running != 0; tracks_uses = !tracks_uses) {
        rows += record_once(gpu, allocator, tracks_uses);
    }
    for (std::thread& user : users) {
        user.join();
    }
    allocator.empty_cache({});
    CHECK_EQUAL(rows > 0 && rows <= 3 * threads * steps, true);
    CHECK_EQUAL(device.used(), std::uint64_t{0});
    return 0;
}
