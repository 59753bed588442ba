#include "record/pinned_observer.hpp"

#include "record/clock.hpp"
#include "record/page_guard.hpp"
#include "record/pinned_copies.hpp"

namespace gpuviz::record {

void PinnedObserver::allocated(std::uint64_t address, std::uint64_t size,
                               std::uint64_t requested_size) {
    if (address == 0 || size == 0) {
        return;
    }
    const Block& block =
        blocks_.insert_or_assign(address, Block{size, requested_size}).first->second;
    if (session_ != nullptr) {
        const SampledCost::Call call(*cost());
        const std::int64_t now = now_ns();
        write(Action::alloc, address, block, now, session_->call_site(stacks_));
    }
}

void PinnedObserver::freed(std::uint64_t address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) {
        return;
    }
    if (session_ != nullptr) {
        const SampledCost::Call call(*cost());
        const std::int64_t now = now_ns();
        const CallSite site = session_->call_site(stacks_);
        if (PageGuard* const guard = session_->page_guard()) {
            guard->lift(address, found->second.size);
        }
        if (PinnedCopies* const copies = session_->pinned_copies()) {
            copies->removed(address, {now, site});
        }
        write(Action::free_requested, address, found->second, now, site);
        write(Action::free_completed, address, found->second, now, site);
    }
    blocks_.erase(found);
}

void PinnedObserver::set_session(Session* session, bool stacks) {
    session_ = session;
    stacks_ = stacks;
    if (session == nullptr) {
        return;
    }
    const std::int64_t start = session->start_ns();
    for (const auto& [address, block] : blocks_) {
        write(Action::alloc, address, block, start, {});
    }
}

void PinnedObserver::write(Action action, std::uint64_t address, const Block& block,
                           std::int64_t time, const CallSite& site) {
    ActivityLog& log = session_->log();
    if (PinnedCopies* const copies = session_->pinned_copies()) {
        if (action == Action::alloc) {
            copies->added(address, block.size);
        }
    }
    if (BlockTouches* const touches = session_->touches()) {
        if (action != Action::free_requested) {
            touches->changed(time, address, action == Action::alloc ? block.size : 0);
        }
    }
    log.host_memory_events.append({.time = log.since_start(time),
                                   .action = action,
                                   .address = address,
                                   .size = std::int64_t(block.size),
                                   .requested_size = std::int64_t(block.requested_size),
                                   .stack = site.stack,
                                   .thread = site.thread,
                                   .range = site.range});
}

}  // namespace gpuviz::record
