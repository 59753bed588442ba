// Many events, most of them invalid: no access is out of bounds, blocks cover segments, and sums
// agree.

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "check.hpp"
#include "state/free_levels.hpp"
#include "state/memory_state.hpp"

namespace {

using gpuviz::record::Action;
using gpuviz::state::BlockState;
using gpuviz::state::DeviceMemory;
using gpuviz::state::PoolKind;
using gpuviz::state::Quantity;

struct Table {
    std::vector<std::int64_t> time, size, requested_size;
    std::vector<std::int8_t> action;
    std::vector<std::uint64_t> address;
    std::vector<std::int16_t> device;
    std::vector<std::uint32_t> stream, pool, stack, thread;
    std::vector<std::int8_t> framework;

    [[nodiscard]] gpuviz::state::MemoryColumns columns() const {
        return {.time = time,
                .action = action,
                .address = address,
                .size = size,
                .requested_size = requested_size,
                .device = device,
                .stream = stream,
                .pool = pool,
                .stack = stack,
                .thread = thread,
                .framework = framework};
    }
};

constexpr std::int64_t page = 16;
constexpr std::int64_t space = 64 * page;

// Occasionally an invalid value.
std::int64_t wild(std::mt19937_64& random, std::int64_t value) {
    return random() % 500 == 0 ? static_cast<std::int64_t>(random()) : value;
}

Table events(std::uint64_t seed, int count) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t end) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    Table table;
    for (int row = 0; row < count; ++row) {
        const auto action = static_cast<Action>(below(8));
        const bool is_page = action >= Action::segment_alloc && action <= Action::segment_unmap;
        const std::int64_t unit = is_page ? page : 1;
        const std::int64_t size = unit * below(is_page ? 8 : 20);
        table.time.push_back(wild(random, row));
        const std::int64_t code = below(50) == 0 ? below(256) - 128 : static_cast<int>(action);
        table.action.push_back(static_cast<std::int8_t>(code));
        table.address.push_back(
            static_cast<std::uint64_t>(wild(random, unit * below(space / unit))));
        table.size.push_back(wild(random, size));
        table.requested_size.push_back(wild(random, size));
        table.device.push_back(static_cast<std::int16_t>(wild(random, below(2))));
        table.stream.push_back(static_cast<std::uint32_t>(below(2)));
        table.pool.push_back(static_cast<std::uint32_t>(below(3)));
        table.stack.push_back(static_cast<std::uint32_t>(row));
        table.thread.push_back(0);
        table.framework.push_back(static_cast<std::int8_t>(random()));
    }
    return table;
}

void check_segments_are_covered(const DeviceMemory& memory) {
    for (const auto& [address, segment] : memory.segments()) {
        std::uint64_t next = address;
        for (auto block = memory.blocks().lower_bound(address);
             block != memory.blocks().end() && block->first < address + segment.size; ++block) {
            CHECK_EQUAL(block->first, next);
            CHECK_EQUAL(block->second.has_segment(), true);
            next += block->second.size;
        }
        CHECK_EQUAL(next, address + segment.size);
    }
}

void check_sums(const DeviceMemory& memory) {
    std::int64_t active = 0;
    std::int64_t reserved = 0;
    for (const auto& [address, block] : memory.blocks()) {
        if (block.state != BlockState::inactive) active += static_cast<std::int64_t>(block.size);
    }
    for (const auto& [address, segment] : memory.segments()) {
        reserved += static_cast<std::int64_t>(segment.size);
    }
    const auto& totals = memory.totals();
    CHECK_EQUAL(totals.of(Quantity::active_bytes, PoolKind::all).current, active);
    CHECK_EQUAL(totals.of(Quantity::reserved_bytes, PoolKind::all).current, reserved);
    CHECK_EQUAL(memory.largest_free(PoolKind::all) <= reserved, true);
}

}  // namespace

int main(int argc, char** argv) {
    for (int seed = 0; seed < 40 * effort(argc, argv); ++seed) {
        const Table table = events(std::uint64_t(seed), 1000);
        gpuviz::state::MemoryState state;
        state.apply(table.columns(), 0, 100);
        state.forget_the_past();
        const auto levels = state.apply_with_levels(table.columns(), 100, 1000);
        CHECK_EQUAL(levels.time.size(), levels.largest_free.size());
        CHECK_EQUAL(state.anomalies() > 0, true);
        gpuviz::state::FreeLevels followed;
        std::map<std::int16_t, gpuviz::state::FreeLevel> last;
        for (const auto& change : followed.add(table.columns())) last[change.device] = change;
        for (const auto& [device, change] : last) {
            const auto parts = state.devices().at(device).parts();
            CHECK_EQUAL(change.largest, parts.largest_free);
            CHECK_EQUAL(change.outside, parts.outside);
        }
        for (const auto& [device, memory] : state.devices()) {
            check_segments_are_covered(memory);
            check_sums(memory);
        }
    }
}
