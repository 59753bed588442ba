#include "hazards/access_checker.hpp"

#include <algorithm>

namespace gpuviz::hazards {

namespace {

bool is_write(Mode mode) { return mode == Mode::write || mode == Mode::atomic; }

Tier tier_of(const Access& access) {
    return access.is_exact && access.mode != Mode::unknown ? Tier::certain : Tier::probable;
}

// Adds an access to the memory in its bytes, whoever owns it now.
void add_past(History& history, const Access& access, const PastAccess& past) {
    history.for_each_extent(access.start, access.stop, true, [&](Extent& extent) {
        History::add(extent, std::max(access.start, extent.start),
                     std::min(access.stop, extent.stop), past);
    });
}

}  // namespace

void AccessChecker::prefetch(const std::vector<Access>& accesses) {
    prefetched_.clear();
    for (const Access& access : accesses) {
        const Extent* extent = blocks_.find(access.block)->extent;
        if (extent) prefetched_.push_back(extent);
        __builtin_prefetch(extent);
    }
    for (const Extent* each : prefetched_) __builtin_prefetch(each->pieces.data());
    for (const Extent* each : prefetched_) {
        if (!each->pieces.empty()) __builtin_prefetch(each->pieces[0].past.data());
    }
}

void AccessChecker::check_past(HazardsOfOperation& found, const Access& access, std::uint64_t base,
                               const Extent& extent, Start start_of_operation) {
    History::for_each_past(
        extent, access.start, access.stop,
        [&](const PastAccess& past, std::uint64_t start, std::uint64_t stop) {
            if (start_of_operation.is_after(past.moment()) || !conflict(past, access)) return;
            if (!unknown_may_write_ && !is_write(past.mode) && !is_write(access.mode)) return;
            const bool is_same = past.block == access.block;
            const bool is_reuse =
                !is_same && (blocks_.is_live(past.block) || blocks_.is_live(access.block));
            const bool is_certain = past.is_exact && past.mode != Mode::unknown;
            const Kind kind = is_reuse ? Kind::reuse : kind_of(past.mode, access.mode);
            const Tier tier = is_certain ? tier_of(access) : Tier::probable;
            const BlockId other = is_same ? 0 : past.block;
            if (found.moment().index > 0 && values_.waits_early(past.moment())) {
                values_.doubt(past.moment(), found.moment(),
                              {kind,
                               tier,
                               past.operation,
                               found.second(),
                               access.block,
                               other,
                               {{start - base, stop - base}}});
                return;
            }
            found.add(kind, tier, past.operation, access.block, other, start - base, stop - base);
        });
}

// Stream-ordered memory exists from its allocation to its free, in the order of their streams.
void AccessChecker::check_lifetime(HazardsOfOperation& found, const Access& access,
                                   const Block& block, Start start_of_operation) {
    if (block.is_graph_memory) return;
    const std::uint64_t start = access.start - block.of.address;
    const std::uint64_t stop = access.stop - block.of.address;
    if (block.of.allocator == Allocator::stream_ordered &&
        !start_of_operation.is_after(block.allocated)) {
        found.add(Kind::use_before_alloc, Tier::certain, block.of.operation, access.block, 0, start,
                  stop);
    }
    if (block.freed_async) {
        found.add(Kind::use_after_free, Tier::certain, block.freed_by, access.block, 0, start,
                  stop);
    }
}

void AccessChecker::check(HazardsOfOperation& found, const std::vector<Access>& accesses,
                          Start start) {
    for (const Access& access : accesses) {
        const Block& block = *blocks_.find(access.block);
        check_lifetime(found, access, block, start);
        if (block.is_live) {
            check_past(found, access, block.of.address, *block.extent, start);
            continue;
        }
        history_.for_each_extent(access.start, access.stop, false, [&](const Extent& extent) {
            check_past(found, access, block.of.address, extent, start);
        });
    }
}

void AccessChecker::check_node(HazardsOfOperation& found, const std::vector<Access>& accesses,
                               Start start, History& nodes) {
    for (const Access& access : accesses) {
        const std::uint64_t base = blocks_.find(access.block)->of.address;
        nodes.for_each_extent(access.start, access.stop, false, [&](const Extent& extent) {
            check_past(found, access, base, extent, start);
        });
    }
}

void AccessChecker::check_owner(HazardsOfOperation& found, const Access& access) {
    const Block& block = *blocks_.find(access.block);
    if (block.is_live || block.is_graph_memory) return;
    if (block.of.allocator == Allocator::private_pool) return;
    const std::uint64_t base = block.of.address;
    const auto add_vacant = [&](std::uint64_t start, std::uint64_t stop) {
        if (block.freed_async || start >= stop) return;
        found.add(Kind::use_after_free, Tier::latent, block.freed_by, access.block, 0, start - base,
                  stop - base);
    };
    std::uint64_t reached = access.start;
    history_.for_each_extent(access.start, access.stop, false, [&](const Extent& extent) {
        const Block* owner = blocks_.find(extent.owner);
        if (!owner) return;
        const std::uint64_t start = std::max(extent.start, access.start);
        const std::uint64_t stop = std::min(extent.stop, access.stop);
        add_vacant(reached, start);
        reached = stop;
        const bool is_certain = owner->of.allocator == Allocator::stream_ordered;
        found.add(Kind::reuse, is_certain ? Tier::certain : tier_of(access), owner->of.operation,
                  access.block, extent.owner, start - base, stop - base);
    });
    add_vacant(reached, access.stop);
}

void AccessChecker::check_owners(HazardsOfOperation& found, const std::vector<Access>& accesses) {
    for (const Access& access : accesses) check_owner(found, access);
}

void AccessChecker::check_free(HazardsOfOperation& found, Tier tier, BlockId id,
                               Start start_of_free) {
    const Block& block = *blocks_.find(id);
    const std::uint64_t base = block.of.address;
    History::for_each_past(*block.extent, base, base + block.of.bytes,
                           [&](const PastAccess& past, std::uint64_t start, std::uint64_t stop) {
                               if (past.block != id || start_of_free.is_after(past.moment()))
                                   return;
                               found.add(Kind::use_after_free, tier, past.operation, id, 0,
                                         start - base, stop - base);
                           });
}

void AccessChecker::remember(OperationId operation, Moment moment,
                             const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
        const PastAccess past(operation, moment, access);
        const Block& block = *blocks_.find(access.block);
        if (block.is_live) {
            History::add(*block.extent, access.start, access.stop, past);
        } else {
            add_past(history_, access, past);
        }
    }
}

void AccessChecker::remember_node(OperationId operation, Moment moment,
                                  const std::vector<Access>& accesses, History& nodes) {
    for (const Access& access : accesses) {
        add_past(nodes, access, PastAccess(operation, moment, access));
    }
}

}  // namespace gpuviz::hazards
