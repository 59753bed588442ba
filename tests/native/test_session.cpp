// Threads push, take, query and stop concurrently; every lost event is counted.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "check.hpp"
#include "record/clock.hpp"
#include "record/session.hpp"
#include "record/thread_id.hpp"

namespace {

using gpuviz::record::EventColumns;
using gpuviz::record::Session;

void push(gpuviz::record::EventRing& ring, int device, std::uint64_t count) {
    for (std::uint64_t number = 0; number < count; ++number) {
        gpuviz::record::MemoryEvent event{};
        event.time_ns = gpuviz::record::now_ns();
        event.address = number;
        event.stream = number % 3;
        event.device = std::uint16_t(device);
        event.thread = gpuviz::record::current_thread_id();
        ring.push(event);
    }
}

std::uint64_t rows(const std::vector<EventColumns>& chunks) {
    std::uint64_t total = 0;
    for (const EventColumns& chunk : chunks) {
        total += chunk.rows();
    }
    return total;
}

std::uint64_t dropped(const Session& session) {
    std::uint64_t total = 0;
    for (const std::uint64_t count : session.dropped()) {
        total += count;
    }
    return total;
}

void join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) {
        thread.join();
    }
}

void stop_from_two_threads(Session& session) {
    std::thread other([&] { session.stop(); });
    session.stop();
    other.join();
}

void everything_at_once() {
    constexpr int devices = 3;
    constexpr std::uint64_t count = 100'000;
    Session session({.ring_capacity = 4096, .interval = std::chrono::microseconds(200)});
    session.start();
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> taken{0};
    std::vector<std::thread> pushers;
    std::vector<std::thread> readers;
    for (int device = 0; device < devices; ++device) {
        pushers.emplace_back([&, device] { push(session.sink(device), device, count); });
    }
    for (const bool flush : {false, true}) {
        readers.emplace_back([&, flush] {
            while (!done) {
                taken += rows(session.take(flush));
                static_cast<void>(session.bytes() + session.log().streams.all().size() +
                                  dropped(session));
            }
        });
    }
    join(pushers);
    stop_from_two_threads(session);
    done = true;
    join(readers);
    taken += rows(session.take(true));
    CHECK_EQUAL(taken.load(), session.events());
    CHECK_EQUAL(session.events() + dropped(session), devices * count);
    CHECK_EQUAL(session.log().streams.all().size(), 3u * devices);
}

void threads_that_ask_for_a_sink_at_once_get_the_same() {
    Session session({.ring_capacity = 16});
    std::vector<gpuviz::record::EventRing*> rings(8);
    std::vector<std::thread> threads;
    for (gpuviz::record::EventRing*& ring : rings) {
        threads.emplace_back([&] { ring = &session.sink(5); });
    }
    join(threads);
    for (const gpuviz::record::EventRing* ring : rings) {
        CHECK_EQUAL(ring, rings[0]);
    }
}

void a_session_may_be_destroyed_while_it_runs() {
    for (int repeat = 0; repeat < 20; ++repeat) {
        Session session({.ring_capacity = 64, .interval = std::chrono::microseconds(50)});
        session.start();
        push(session.sink(0), 0, 100);
    }
}

#if !defined(__SANITIZE_THREAD__)
// ThreadSanitizer does not follow a process with threads into its child.
void a_child_neither_waits_nor_collects() {
    auto session = std::make_unique<Session>(gpuviz::record::SessionOptions{
        .ring_capacity = 8, .interval = std::chrono::microseconds(1)});
    session->start();
    gpuviz::record::EventRing& ring = session->sink(0);
    push(ring, 0, 100);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        session->abandon_after_fork();
        const std::uint64_t before = dropped(*session);
        push(ring, 0, 100);
        const bool dropping = dropped(*session) >= before + 92;
        const bool empty = session->take(true).empty();
        session.reset();
        _exit(dropping && empty ? 7 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQUAL(WEXITSTATUS(status), 7);
}
#endif

}  // namespace

int main() {
    everything_at_once();
    threads_that_ask_for_a_sink_at_once_get_the_same();
    a_session_may_be_destroyed_while_it_runs();
#if !defined(__SANITIZE_THREAD__)
    for (int repeat = 0; repeat < 20; ++repeat) {
        a_child_neither_waits_nor_collects();
    }
#endif
}
