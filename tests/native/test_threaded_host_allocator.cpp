// Threads share one allocator of pinned memory and one device with the allocator of device memory:
// no block is handed out twice or while a copy uses it, and at the end all memory is returned. What
// is recorded meanwhile adds up.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "allocator/host_allocator.hpp"
#include "check.hpp"
#include "simulation/scheduled_device.hpp"
#include "simulation/simulated_gpu.hpp"

namespace {

using gpuviz::allocator::CachingAllocator;
using gpuviz::allocator::HostAllocator;
using gpuviz::allocator::Settings;
using gpuviz::device::Address;
using gpuviz::device::StreamHandle;
using gpuviz::record::Action;
using gpuviz::record::ActivityLog;
using gpuviz::record::CopyKind;
using gpuviz::simulation::ScheduledDevice;
using gpuviz::simulation::SimulatedGpu;
using gpuviz::simulation::VirtualClock;

constexpr int thread_count = 4;
constexpr int steps = 1'000;
constexpr std::uint64_t capacity = std::uint64_t{8} << 30;

// The live blocks of all threads.
class Blocks {
  public:
    void add(Address address, std::uint64_t size) {
        const std::lock_guard lock(mutex_);
        const auto next = ends_.lower_bound(address);
        CHECK_EQUAL(next == ends_.end() || address + size <= next->first, true);
        CHECK_EQUAL(next == ends_.begin() || std::prev(next)->second <= address, true);
        ends_.emplace(address, address + size);
    }
    void remove(Address address) {
        const std::lock_guard lock(mutex_);
        CHECK_EQUAL(ends_.erase(address), 1u);
    }

  private:
    std::mutex mutex_;
    std::map<Address, Address> ends_;
};

struct Machine {
    SimulatedGpu gpu{0, std::make_unique<VirtualClock>()};
    ScheduledDevice device{gpu, capacity};
    CachingAllocator memory{device, Settings{}};
    HostAllocator host{device, Settings{}};
    Blocks blocks;
};

void copy_and_free(Machine& machine, int thread) {
    std::mt19937_64 random(static_cast<unsigned>(thread));
    StreamHandle stream = machine.gpu.create_stream(true, 0, {});
    std::vector<Address> held;
    const auto free_newest = [&] {
        const Address address = held.back();
        held.pop_back();
        machine.blocks.remove(address);
        if (address % 8192 == 0) {
            machine.host.free_after(address, machine.device, {stream, StreamHandle{0}});
        } else {
            machine.host.free(address);
        }
    };
    for (int step = 0; step < steps; ++step) {
        if (held.size() < 4 || (held.size() < 16 && random() % 2 == 0)) {
            const std::uint64_t size = 1 + random() % (std::uint64_t{1} << random() % 22);
            const std::optional<Address> cached = machine.host.try_allocate(size);
            held.push_back(cached ? *cached : machine.host.allocate(size));
            machine.blocks.add(held.back(), size);
            const Address array = machine.memory.allocate(size, stream, {});
            machine.gpu.copy(
                stream, {.kind = CopyKind::host_to_device, .bytes = size, .destination = array},
                {});
            CHECK_EQUAL(machine.host.record_event(held.back(), machine.device, stream), true);
            machine.memory.free(array, {});
        } else {
            std::swap(held[random() % held.size()], held.back());
            free_newest();
        }
        if (random() % 64 == 0) {
            machine.host.end_stream(machine.device, stream);
            machine.gpu.destroy_stream(stream, {});
            stream = machine.gpu.create_stream(true, 0, {});
        }
    }
    while (!held.empty()) {
        free_newest();
    }
    machine.host.end_stream(machine.device, stream);
    machine.gpu.destroy_stream(stream, {});
}

void query_until(HostAllocator& allocator, const std::atomic<bool>& done) {
    while (!done) {
        const auto statistics = allocator.statistics();
        CHECK_EQUAL(statistics.active_bytes.current <= statistics.allocated_bytes.current, true);
        allocator.empty_cache();
    }
}

// Applies every row, and checks that no level becomes negative or exceeds the next.
void check_levels(ActivityLog& log) {
    std::map<Action, std::int64_t> bytes;
    for (const auto& rows : log.host_memory_events.take(true)) {
        const Action* actions = nullptr;
        const std::int64_t* sizes = nullptr;
        rows.for_each_column([&](std::string_view name, const auto* values) {
            if constexpr (std::is_same_v<decltype(values), const Action*>) {
                actions = values;
            } else if constexpr (std::is_same_v<decltype(values), const std::int64_t*>) {
                sizes = name == "size" ? values : sizes;
            }
        });
        for (std::size_t row = 0; row < rows.rows(); ++row) {
            bytes[actions[row]] += sizes[row];
            const std::int64_t active = bytes[Action::alloc] - bytes[Action::free_completed];
            const std::int64_t reserved =
                bytes[Action::segment_alloc] - bytes[Action::segment_free];
            CHECK_EQUAL(bytes[Action::free_completed] <= bytes[Action::free_requested], true);
            CHECK_EQUAL(active >= 0 && active <= reserved, true);
        }
    }
    CHECK_EQUAL(bytes[Action::alloc] > 0, true);
    CHECK_EQUAL(bytes[Action::alloc], bytes[Action::free_completed]);
    CHECK_EQUAL(bytes[Action::segment_alloc], bytes[Action::segment_free]);
}

void threads_share_pinned_memory() {
    Machine machine;
    ActivityLog log;
    machine.host.record_into(log);
    std::atomic<bool> done{false};
    std::thread query([&] { query_until(machine.host, done); });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
        threads.emplace_back([&, thread] { copy_and_free(machine, thread); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    done = true;
    query.join();
    machine.gpu.synchronize_device({});
    machine.host.empty_cache();
    CHECK_EQUAL(machine.host.statistics().active_requests.current, 0);
    CHECK_EQUAL(machine.device.host_used(), 0u);
    machine.host.stop_recording();
    check_levels(log);
}

// A device whose stream `capturing` captures.
class CapturingDevice final : public gpuviz::device::SimulatedDevice {
  public:
    using SimulatedDevice::SimulatedDevice;
    [[nodiscard]] bool is_capturing(StreamHandle stream) override { return stream == capturing; }

    StreamHandle capturing = 0;
};

constexpr StreamHandle stream = 7;
constexpr std::uint64_t size = 1 << 20;

void a_block_that_captured_work_uses_is_never_reused() {
    CapturingDevice device(capacity);
    HostAllocator allocator(device, Settings{});
    const Address block = allocator.allocate(size);
    device.capturing = stream;
    CHECK_EQUAL(allocator.record_event(block, device, stream), true);
    device.capturing = 0;
    allocator.free(block);
    CHECK_EQUAL(allocator.allocate(size) != block, true);
    allocator.empty_cache();
    CHECK_EQUAL(device.host_used(), 2 * size);
}

void a_block_freed_while_its_stream_captures_waits_for_the_end_of_the_capture() {
    CapturingDevice device(capacity);
    HostAllocator allocator(device, Settings{});
    const Address block = allocator.allocate(size);
    CHECK_EQUAL(allocator.record_event(block, device, stream), true);
    device.capturing = stream;
    allocator.free(block);
    CHECK_EQUAL(allocator.allocate(size) != block, true);
    device.capturing = 0;
    CHECK_EQUAL(allocator.allocate(size), block);
}

void a_block_waits_for_the_copies_that_a_tracer_saw() {
    CapturingDevice device(capacity);
    device.capturing = 1;
    HostAllocator allocator(device, Settings{});
    const Address block = allocator.allocate(size);
    const Address inside = block + 1234;
    device.occupy(stream);
    CHECK_EQUAL(allocator.may_contain(inside), true);
    allocator.used(0, stream, std::span(&inside, 1));
    allocator.free(block);
    const Address other = allocator.allocate(size);
    CHECK_EQUAL(other != block, true);
    device.finish(stream);
    CHECK_EQUAL(allocator.allocate(size), block);

    allocator.used(1, stream, std::span(&other, 1));  // of a device that is not known
    allocator.free(other);
    CHECK_EQUAL(allocator.allocate(size), other);
}

void a_block_copied_to_another_device_waits_for_its_stream() {
    gpuviz::device::SimulatedDevice device(capacity);
    gpuviz::device::SimulatedDevice second(capacity, 1);
    HostAllocator allocator(device, Settings{});
    allocator.add_device(second);
    const Address block = allocator.allocate(size);
    second.occupy(stream);
    allocator.used(1, stream, std::span(&block, 1));
    allocator.free(block);
    CHECK_EQUAL(allocator.allocate(size) != block, true);
    second.finish(stream);
    CHECK_EQUAL(allocator.allocate(size), block);
}

void a_copy_that_a_graph_captured_keeps_its_block_from_reuse() {
    CapturingDevice device(capacity);
    device.capturing = stream;
    HostAllocator allocator(device, Settings{});
    const Address block = allocator.allocate(size);
    allocator.used(0, stream, std::span(&block, 1));
    device.capturing = 0;
    allocator.free(block);
    CHECK_EQUAL(allocator.allocate(size) != block, true);
}

// Counts the events that are in use.
class CountingDevice final : public gpuviz::device::SimulatedDevice {
  public:
    using SimulatedDevice::SimulatedDevice;
    [[nodiscard]] gpuviz::device::EventHandle record_event(StreamHandle recorded) override {
        most_events = std::max(most_events, ++events);
        return SimulatedDevice::record_event(recorded);
    }
    void release(gpuviz::device::EventHandle event) override {
        --events;
        SimulatedDevice::release(event);
    }

    int events = 0;
    int most_events = 0;
};

void copies_without_allocations_pile_up_no_events() {
    CountingDevice device(capacity);
    HostAllocator allocator(device, Settings{});
    const Address block = allocator.allocate(size);
    for (int copy = 0; copy < steps; ++copy) {
        allocator.used(0, stream, std::span(&block, 1));
    }
    CHECK_EQUAL(device.most_events, 1);
    CHECK_EQUAL(device.events, 0);
}

}  // namespace

int main() {
    threads_share_pinned_memory();
    a_block_that_captured_work_uses_is_never_reused();
    a_block_freed_while_its_stream_captures_waits_for_the_end_of_the_capture();
    a_block_waits_for_the_copies_that_a_tracer_saw();
    a_block_copied_to_another_device_waits_for_its_stream();
    a_copy_that_a_graph_captured_keeps_its_block_from_reuse();
    copies_without_allocations_pile_up_no_events();
}
