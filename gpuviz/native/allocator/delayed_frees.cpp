#include "allocator/delayed_frees.hpp"

#include <algorithm>
#include <utility>

namespace gpuviz::allocator {

// The use whose event is the newest names the line.
DelayedFreeCounts::Wait DelayedFreeCounts::begun(const Block& block, const Uses& uses,
                                                 std::uint32_t freed) {
    const auto newest = std::max_element(
        uses.begin(), uses.end(),
        [](const auto& left, const auto& right) { return left->number() < right->number(); });
    const LastUse& use = **newest;
    const Wait wait{
        {block.stack, freed, use.stack, block.stream, use.stream}, block.size, clock_()};
    DelayedFrees& row = rows_[wait.lines];
    row.lines = wait.lines;
    row.frees += 1;
    row.bytes += wait.bytes;
    return wait;
}

void DelayedFreeCounts::ended(const Wait& wait, std::int64_t now_ns) {
    constexpr double ns_per_second = 1e9;
    rows_[wait.lines].byte_seconds +=
        double(wait.bytes) * double(now_ns - wait.since_ns) / ns_per_second;
}

void DelayedFreeCounts::released(const Block& block) {
    const auto held = held_.find(&block);
    if (held != held_.end()) {
        ended(held->second, clock_());
        held_.erase(held);
    }
}

void DelayedFreeCounts::imagine(const Block& block, Uses uses, std::uint32_t freed) {
    const Wait wait = begun(block, uses, freed);
    imagined_.push_back({wait, std::move(uses)});
}

void DelayedFreeCounts::poll(device::Device& device) {
    std::erase_if(imagined_, [&](const Imagined& each) {
        const bool is_done = std::all_of(each.uses.begin(), each.uses.end(), [&](const auto& use) {
            return use->is_recorded() && device.is_complete(use->event());
        });
        if (is_done) {
            ended(each.wait, clock_());
        }
        return is_done;
    });
}

void DelayedFreeCounts::end() {
    for (const auto& [block, wait] : std::exchange(held_, {})) {
        ended(wait, clock_());
    }
    for (const Imagined& each : std::exchange(imagined_, {})) {
        ended(each.wait, clock_());
    }
}

std::vector<DelayedFrees> DelayedFreeCounts::rows() const {
    std::vector<DelayedFrees> rows;
    rows.reserve(rows_.size());
    for (const auto& [lines, row] : rows_) {
        rows.push_back(row);
    }
    return rows;
}

}  // namespace gpuviz::allocator
