// Activities, calls and waits of any content: no sum overflows, and the causes of idle time add up.

#include "analysis/overlap.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "check.hpp"

namespace {

using gpuviz::analysis::ActivityRows;
using gpuviz::analysis::HostCallRows;
using gpuviz::analysis::Lane;
using gpuviz::analysis::SynchronizationRows;

// Columns of any content; times are small or, `wild`, of the whole range.
struct Tables {
    std::vector<std::int64_t> time, end;
    std::vector<std::uint8_t> code;
    std::vector<std::int16_t> device;
    std::vector<std::uint32_t> stream, correlation;
    std::vector<std::uint64_t> event_sync_id;

    Tables(std::mt19937_64& random, std::size_t rows, bool wild) {
        const auto below = [&](std::uint64_t bound) { return random() % bound; };
        for (std::size_t row = 0; row < rows; ++row) {
            const auto moment = static_cast<std::int64_t>(wild ? random() : below(1000));
            time.push_back(moment);
            end.push_back(static_cast<std::int64_t>(wild ? random() : below(1000)));
            code.push_back(static_cast<std::uint8_t>(below(wild ? 256 : 4)));
            device.push_back(static_cast<std::int16_t>(below(2)));
            stream.push_back(static_cast<std::uint32_t>(below(3)));
            correlation.push_back(static_cast<std::uint32_t>(below(rows + 1)));
            event_sync_id.push_back(below(4));
        }
    }

    [[nodiscard]] ActivityRows activities() const {
        return {time, end, code, device, stream, correlation};
    }
    [[nodiscard]] HostCallRows calls() const { return {time, end, code, stream, correlation}; }
    [[nodiscard]] SynchronizationRows synchronizations() const {
        return {time, end, code, stream, event_sync_id, correlation};
    }
};

void check_sums(const Lane& lane) {
    const auto& idle = lane.idle;
    const auto causes = idle.host + idle.dependency + idle.synchronization + idle.allocation +
                        idle.unrecorded_event + idle.gpu_busy + idle.unknown;
    CHECK_EQUAL(causes, lane.window.length() - lane.times.busy);
    for (const auto part : {idle.host, idle.dependency, idle.synchronization, idle.allocation,
                            idle.unrecorded_event, idle.gpu_busy, idle.unknown, lane.times.busy}) {
        CHECK_EQUAL(part >= 0, true);
    }
    CHECK_EQUAL(lane.times.kernel + lane.times.copy - lane.times.kernel_copy <= lane.times.busy,
                true);
    CHECK_EQUAL(lane.times.kernel_kernel <= lane.times.kernel, true);
}

void check_any_tables(bool wild) {
    std::mt19937_64 random(wild ? 1 : 2);
    constexpr auto limit = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rows = 0; rows < 60; ++rows) {
        const Tables activities(random, rows, wild);
        const Tables calls(random, rows, wild);
        const Tables waits(random, rows, wild);
        const auto lanes_of = [&](std::optional<std::int64_t> begin,
                                  std::optional<std::int64_t> end) {
            return gpuviz::analysis::overlap(activities.activities(), calls.calls(),
                                             waits.synchronizations(), begin, end);
        };
        for (const Lane& lane : lanes_of(std::nullopt, std::nullopt)) check_sums(lane);
        for (const Lane& lane : lanes_of(100, 700)) check_sums(lane);
        for (const Lane& lane : lanes_of(-limit, limit)) check_sums(lane);
    }
}

}  // namespace

int main() {
    check_any_tables(false);
    check_any_tables(true);
}
