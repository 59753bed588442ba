#include "hazards/hazard.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace gpuviz::hazards {

namespace {

// For each byte of one block, appends only the strongest of an operation's accesses.
void append_strongest(std::span<const Access> accesses, std::vector<Access>& kept) {
    if (accesses.size() == 1) {
        kept.push_back(accesses[0]);
        return;
    }
    std::vector<std::uint64_t> borders;
    for (const Access& each : accesses) borders.insert(borders.end(), {each.start, each.stop});
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    const auto strength = [](const Access& access) {
        return std::pair(access.mode, access.is_exact);
    };
    for (std::size_t border = 0; border + 1 < borders.size(); ++border) {
        const std::uint64_t start = borders[border], stop = borders[border + 1];
        std::vector<Access> best;
        for (Access each : accesses) {
            if (each.start > start || each.stop < stop) continue;
            if (!best.empty() && strength(each) < strength(best[0])) continue;
            if (!best.empty() && strength(each) > strength(best[0])) best.clear();
            each.start = start;
            each.stop = stop;
            const bool is_known = std::any_of(best.begin(), best.end(), [&](const Access& other) {
                return each.is_exact || other.pointer == each.pointer;
            });
            if (!is_known) best.push_back(each);
        }
        kept.insert(kept.end(), best.begin(), best.end());
    }
}

}  // namespace

void HazardsOfOperation::add(Kind kind, Tier tier, OperationId first, BlockId block,
                             BlockId other_block, std::uint64_t start, std::uint64_t stop) {
    if (start >= stop || first == 0) return;
    const auto same = std::find_if(hazards_.begin(), hazards_.end(), [&](const Hazard& each) {
        return each.kind == kind && each.tier == tier && each.first == first &&
               each.block == block && each.other_block == other_block;
    });
    if (same != hazards_.end()) {
        same->bytes.emplace_back(start, stop);
        return;
    }
    hazards_.push_back({kind, tier, first, second_, block, other_block, {{start, stop}}});
}

void HazardsOfOperation::append_to(std::vector<Hazard>& hazards) {
    for (Hazard& each : hazards_) {
        std::sort(each.bytes.begin(), each.bytes.end());
        auto last = each.bytes.begin();
        for (auto next = std::next(last); next != each.bytes.end(); ++next) {
            if (next->first <= last->second) {
                last->second = std::max(last->second, next->second);
            } else {
                *++last = *next;
            }
        }
        each.bytes.erase(std::next(last), each.bytes.end());
        hazards.push_back(std::move(each));
    }
    hazards_.clear();
}

bool conflict(const PastAccess& first, const Access& second) noexcept {
    if (first.mode == second.mode && first.mode != Mode::write) return false;
    return first.is_exact || second.is_exact || first.pointer == second.pointer;
}

Kind kind_of(Mode first, Mode second) noexcept {
    if (first == Mode::read) return Kind::war;
    return second == Mode::read ? Kind::raw : Kind::waw;
}

std::vector<Access> strongest(std::vector<Access> accesses) {
    const auto by_block = [](const Access& a, const Access& b) { return a.block < b.block; };
    std::stable_sort(accesses.begin(), accesses.end(), by_block);
    std::vector<Access> kept;
    for (auto first = accesses.begin(); first != accesses.end();) {
        const auto last = std::upper_bound(first, accesses.end(), *first, by_block);
        append_strongest({first, last}, kept);
        first = last;
    }
    return kept;
}

}  // namespace gpuviz::hazards
