// Threads that call and pause at random while they are sampled: each row lies in one pause.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "check.hpp"
#include "record/clock.hpp"
#include "record/host_sampler.hpp"
#include "record/thread_id.hpp"

namespace {

using gpuviz::record::ActivityLog;
using gpuviz::record::Columns;
using gpuviz::record::HostSampler;
using gpuviz::record::HostSampleRow;
using gpuviz::record::now_ns;
using gpuviz::record::StackFrame;
using gpuviz::record::StackTable;

// Observes threads without stacks.
class Walker final : public gpuviz::record::StackWalker {
  public:
    std::uint32_t capture(StackTable&) noexcept override { return 0; }
    std::uint32_t capture_without_waiting(StackTable&) noexcept override { return 0; }
    void own_running(StackTable&) noexcept override {}
    const char* method() const noexcept override { return "test"; }
    bool can_observe() const noexcept override { return true; }
    const void* calling_thread() noexcept override { return nullptr; }
};

// The system may stop a thread between reading the clock and entering a call. Until it has entered,
// rows of the pause can end.
struct Pause {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t entered;
};

std::vector<HostSampleRow> rows_of(ActivityLog& log) {
    std::vector<HostSampleRow> rows;
    for (const Columns<HostSampleRow>& chunk : log.host_samples.take(true)) {
        const std::size_t first = rows.size();
        rows.resize(first + chunk.rows());
        chunk.for_each_column([&](const std::string_view name, const auto* values) {
            for (std::size_t row = 0; row < chunk.rows(); ++row) {
                if (name == "time") {
                    rows[first + row].time = std::int64_t(values[row]);
                } else if (name == "end") {
                    rows[first + row].end = std::int64_t(values[row]);
                } else if (name == "thread") {
                    rows[first + row].thread = std::uint32_t(values[row]);
                } else if (name == "samples") {
                    rows[first + row].samples = std::uint32_t(values[row]);
                }
            }
        });
    }
    return rows;
}

// Whether there were rows that end with their pause, which a busy machine may not leave the sampler
// the time for.
bool samples_lie_in_pauses() {
    ActivityLog log;
    log.start(0);
    StackTable stacks(64);
    Walker walker;
    HostSampler sampler(walker, stacks, 64, log);
    sampler.start();
    std::mutex mutex;
    std::map<std::uint32_t, std::vector<Pause>> pauses;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            std::vector<Pause> own;
            std::int64_t left = 0;
            for (int call = 0; call < 30; ++call) {
                const std::int64_t now = now_ns();
                sampler.entered(now);
                if (left != 0) {
                    own.push_back({left, now, now_ns()});
                }
                if (random() % 3 == 0) {  // a call within the call
                    sampler.entered(now_ns());
                    sampler.exited(now_ns(), false);
                }
                left = now_ns();
                // The last thread waits for others and launches nothing.
                sampler.exited(left, seed != 3);
                if (random() % 2 == 0) {
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
                }
            }
            const std::lock_guard lock(mutex);
            pauses[gpuviz::record::current_thread_id()] = own;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    sampler.stop();
    bool has_ends = false;
    for (const HostSampleRow& row : rows_of(log)) {
        const std::vector<Pause>& own = pauses[row.thread];
        has_ends |= std::ranges::any_of(
            own, [&](const Pause& pause) { return row.time < row.end && row.end == pause.end; });
        const bool is_inside = std::ranges::any_of(own, [&](const Pause& pause) {
            return pause.begin <= row.time && row.time <= row.end && row.end <= pause.entered;
        });
        // After its last call a thread pauses until it ends, or until the sampler stops.
        const bool is_last = !own.empty() && row.time >= own.back().entered;
        CHECK_EQUAL(is_inside || is_last, true);
        CHECK_EQUAL(row.samples != 0, true);
    }
    CHECK_EQUAL(sampler.cpu_ns() > 0, true);
    return has_ends;
}

void each_row_lies_in_one_pause_of_its_thread() {
    int tries = 0;
    while (!samples_lie_in_pauses()) {
        CHECK_EQUAL(++tries < 100, true);
    }
}

void a_sampler_without_threads_stops() {
    ActivityLog log;
    StackTable stacks(64);
    Walker walker;
    HostSampler sampler(walker, stacks, 64, log);
    sampler.start();
    sampler.entered(now_ns());
    sampler.exited(now_ns(), false);
    sampler.stop();
    CHECK_EQUAL(log.host_samples.rows(), 0u);
}

void a_collection_has_its_times() {
    ActivityLog log;
    log.start(1000);
    StackTable stacks(64);
    Walker walker;
    HostSampler sampler(walker, stacks, 64, log);
    sampler.collected(1500, 2500, 7);
    const std::vector<HostSampleRow> rows = rows_of(log);
    CHECK_EQUAL(rows.size(), 1u);
    CHECK_EQUAL(rows[0].time, 500);
    CHECK_EQUAL(rows[0].end, 1500);
}

void a_forgotten_thread_is_not_sampled_until_it_launches_again() {
    ActivityLog log;
    log.start(0);
    StackTable stacks(64);
    Walker walker;
    HostSampler sampler(walker, stacks, 64, log);
    sampler.start();
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([&] {
            while (!is_over) {
                sampler.entered(now_ns());
                sampler.exited(now_ns(), true);
                std::this_thread::sleep_for(std::chrono::microseconds(300));
            }
        });
    }
    for (int time = 0; time < 50; ++time) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
        sampler.forget_threads();
    }
    is_over = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    sampler.exited(now_ns(), true);
    sampler.forget_threads();
    const std::int64_t forgotten_ns = now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sampler.stop();
    for (const HostSampleRow& row : rows_of(log)) {
        CHECK_EQUAL(row.end <= forgotten_ns, true);
    }
}

}  // namespace

int main() {
    a_forgotten_thread_is_not_sampled_until_it_launches_again();
    each_row_lies_in_one_pause_of_its_thread();
    a_sampler_without_threads_stops();
    a_collection_has_its_times();
}
