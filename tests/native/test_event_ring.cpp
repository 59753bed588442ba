// One thread pushes while another drains: every event arrives or is counted as dropped.
#include <thread>

#include "check.hpp"
#include "record/clock.hpp"
#include "record/event_ring.hpp"

namespace {

gpuviz::record::MemoryEvent numbered(std::uint64_t number) {
    gpuviz::record::MemoryEvent event{};
    event.address = number;
    event.size = ~number;
    event.action = gpuviz::record::Action(number % gpuviz::record::action_count);
    return event;
}

std::uint64_t sum(const gpuviz::record::ActionCounts& counts) {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) {
        total += count;
    }
    return total;
}

void a_producer_and_a_consumer_share_it_without_a_lock(std::size_t capacity, std::uint64_t count) {
    gpuviz::record::SampledCost cost;
    gpuviz::record::EventRing ring(capacity, cost);
    std::thread producer([&] {
        for (std::uint64_t number = 1; number <= count; ++number) {
            ring.push(numbered(number));
        }
    });
    std::uint64_t received = 0;
    std::uint64_t last = 0;
    const auto consume = [&](std::span<const gpuviz::record::MemoryEvent> events) {
        for (const gpuviz::record::MemoryEvent& event : events) {
            CHECK_EQUAL(event.address > last, true);
            CHECK_EQUAL(event.size, ~event.address);
            last = event.address;
        }
        received += events.size();
        return events.size();
    };
    while (received + sum(ring.dropped()) < count) {
        ring.drain(consume);
    }
    producer.join();
    ring.drain(consume);
    CHECK_EQUAL(received + sum(ring.dropped()), count);
}

void events_of_several_allocators_are_in_the_order_of_their_times() {
    constexpr std::uint64_t count = 20'000;
    gpuviz::record::SampledCost cost;
    gpuviz::record::EventRing ring(std::size_t{1} << 17, cost);
    const auto produce = [&](std::uint32_t thread) {
        for (std::uint64_t number = 1; number <= count; ++number) {
            gpuviz::record::MemoryEvent event = numbered(number);
            event.thread = thread;
            event.time_ns = gpuviz::record::now_ns();
            ring.push(event);
        }
    };
    std::thread first(produce, 0);
    std::thread second(produce, 1);
    first.join();
    second.join();
    std::int64_t time_ns = 0;
    std::uint64_t last[2] = {0, 0};
    ring.drain([&](std::span<const gpuviz::record::MemoryEvent> events) {
        for (const gpuviz::record::MemoryEvent& event : events) {
            CHECK_EQUAL(event.time_ns >= time_ns, true);
            CHECK_EQUAL(event.address, ++last[event.thread]);
            time_ns = event.time_ns;
        }
        return events.size();
    });
    CHECK_EQUAL(last[0], count);
    CHECK_EQUAL(last[1], count);
}

void a_consumer_may_take_less_than_it_is_offered() {
    gpuviz::record::SampledCost cost;
    gpuviz::record::EventRing ring(4, cost);
    for (std::uint64_t number = 1; number <= 3; ++number) {
        ring.push(numbered(number));
    }
    const auto take = [&](std::size_t limit) {
        std::uint64_t seen = 0;
        ring.drain([&](std::span<const gpuviz::record::MemoryEvent> events) {
            const std::size_t taken = std::min(limit, events.size());
            for (const gpuviz::record::MemoryEvent& event : events.first(taken)) {
                seen = 10 * seen + event.address;
            }
            limit -= taken;
            return taken;
        });
        return seen;
    };
    CHECK_EQUAL(take(0), 0u);
    CHECK_EQUAL(take(2), 12u);
    for (std::uint64_t number = 4; number <= 7; ++number) {
        ring.push(numbered(number));
    }
    CHECK_EQUAL(take(9), 3456u);
    CHECK_EQUAL(sum(ring.dropped()), 1u);
}

}  // namespace

int main() {
    a_producer_and_a_consumer_share_it_without_a_lock(1, 5'000);
    a_producer_and_a_consumer_share_it_without_a_lock(64, 200'000);
    a_producer_and_a_consumer_share_it_without_a_lock(1 << 16, 200'000);
    a_consumer_may_take_less_than_it_is_offered();
    events_of_several_allocators_are_in_the_order_of_their_times();
}
