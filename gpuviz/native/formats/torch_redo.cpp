// Replays a trace, and computes the events to add before and after it.
#include <algorithm>
#include <iterator>

#include "formats/torch_device.hpp"
#include "torch/homes.hpp"

namespace gpuviz::formats {

using record::Action;

void TorchDevice::redo(std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
        const std::uint64_t address = events_->address[row];
        const Home home{unsigned_of(events_->size[row]), events_->stream[row], history_->pool[row],
                        events_->stack[row], events_->action[row] == Action::segment_map};
        notice_setting(row);
        switch (events_->action[row]) {
            case Action::alloc:
                redo_alloc(row);
                break;
            case Action::free_requested:
            case Action::free_completed:
            case Action::record_stream:
            case Action::annotate:
                redo_free(row);
                break;
            case Action::oom:
                history_->pool[row] = pool_of(row, unsigned_of(events_->size[row]));
                break;
            case Action::segment_alloc:
                if (home.size > 0) homes_.insert_or_assign(address, home);
                break;
            case Action::segment_map:
                if (home.size > 0 && !is_reserved(address, end(row)))
                    torch::add_run(homes_, address, home);
                break;
            case Action::segment_free: {
                const auto known = homes_.find(address);
                if (known == homes_.end() || known->second.is_expandable) break;
                forget_live(address, address + known->second.size);
                homes_.erase(known);
                break;
            }
            case Action::segment_unmap:
                if (torch::cut_run(homes_, address, end(row))) forget_live(address, end(row));
                break;
            default:
                break;
        }
    }
}

void TorchDevice::redo_alloc(std::size_t row) {
    const std::uint64_t address = events_->address[row];
    const auto home = torch::home_at(homes_, address);
    const bool is_exact = history_->size[row] > 0;
    std::uint64_t size = is_exact ? unsigned_of(history_->size[row]) : rounded(row);
    forget_live(address, address + std::max<std::uint64_t>(size, 1));
    if (!is_exact && events_->block_size[row] == 0) size = block_size(row, home);
    const std::uint32_t pool = home != homes_.end() && events_->kind[row] == SegmentKind::unknown
                                   ? home->second.pool
                                   : pool_of(row, size);
    history_->size[row] = bytes(size);
    history_->pool[row] = pool;
    lives_.insert_or_assign(address, Live{size, events_->size[row], events_->stream[row], pool,
                                          events_->stack[row], false, is_exact, size, 0});
}

// With expandable segments enabled, torch creates no others; with them disabled, it does not
// allocate from existing ones.
void TorchDevice::notice_setting(std::size_t row) {
    const Action action = events_->action[row];
    if (action == Action::segment_map) is_expandable_ = true;
    if (action == Action::segment_alloc) is_expandable_ = false;
    if (action != Action::alloc || is_expandable_) return;
    const auto home = torch::home_at(homes_, events_->address[row]);
    is_expandable_ = home != homes_.end() && home->second.is_expandable;
}

// By torch's rules for splitting the free block at the address.
std::uint64_t TorchDevice::block_size(std::size_t row, Homes::const_iterator home) const {
    const std::uint64_t address = events_->address[row];
    const std::uint64_t size = rounded(row);
    if (home == homes_.end()) return size;
    const auto next = lives_.upper_bound(address);
    const std::uint64_t home_end = home->first + home->second.size;
    const std::uint64_t limit = next == lives_.end() ? home_end : std::min(home_end, next->first);
    const std::int64_t most = -history_->size[row];
    if (most > 0 && limit - address > unsigned_of(most)) return size;
    const bool finely = is_expandable_ || home->second.is_expandable || home->second.pool % 2 == 0;
    return torch::block_size(limit - address, size, finely, rounding_->max_split_size);
}

void TorchDevice::redo_free(std::size_t row) {
    const Action action = events_->action[row];
    const auto block = lives_.find(events_->address[row]);
    if (block == lives_.end()) {
        history_->size[row] = events_->size[row] == 0 ? 0 : bytes(rounded(row));
        return;
    }
    history_->size[row] = bytes(block->second.size);
    history_->pool[row] = block->second.pool;
    if (action == Action::free_requested) block->second.is_pending = true;
    if (action == Action::free_completed) lives_.erase(block);
}

void TorchDevice::describe_before() {
    for (const auto& home : homes_) emit_home(history_->before, true, home);
    for (const auto& live : lives_) {
        emit_live(history_->before, Action::alloc, live);
        if (live.second.is_pending) emit_live(history_->before, Action::free_requested, live);
    }
}

void TorchDevice::describe_after() {
    std::vector<TorchRow>& rows = history_->after;
    const auto stays = [&](std::uint64_t address) {
        const auto home = torch::home_at(homes_, address);
        if (home == homes_.end()) return true;
        const auto last = last_homes_.find(home->first);
        return last != last_homes_.end() && last->second == home->second;
    };
    Lives kept;
    for (const auto& live : lives_) {
        const auto last = last_lives_.find(live.first);
        const bool is_same = last != last_lives_.end() && last->second.size == live.second.size;
        if (!is_same || !stays(live.first) ||
            (live.second.is_pending && !last->second.is_pending)) {
            emit_free(live);
            continue;
        }
        kept.insert(live);
        if (last->second.is_pending && !live.second.is_pending) {
            emit_live(rows, Action::free_requested, live);
        }
    }
    for (const auto& home : homes_) {
        const auto last = last_homes_.find(home.first);
        if (last == last_homes_.end() || !(last->second == home.second)) {
            emit_home(rows, false, home);
        }
    }
    for (const auto& home : last_homes_) {
        const auto known = homes_.find(home.first);
        if (known == homes_.end() || !(known->second == home.second)) emit_home(rows, true, home);
    }
    for (const auto& live : last_lives_) {
        if (kept.contains(live.first)) continue;
        emit_live(rows, Action::alloc, live);
        if (live.second.is_pending) emit_live(rows, Action::free_requested, live);
    }
}

void TorchDevice::emit_home(std::vector<TorchRow>& rows, bool added,
                            const Homes::value_type& home) const {
    const auto& [address, each] = home;
    const Action change = each.is_expandable
                              ? (added ? Action::segment_map : Action::segment_unmap)
                              : (added ? Action::segment_alloc : Action::segment_free);
    rows.push_back({change, device_, address, bytes(each.size), 0, each.stream, each.pool,
                    added ? each.stack : 0});
}

void TorchDevice::emit_live(std::vector<TorchRow>& rows, Action action,
                            const Lives::value_type& live) const {
    const auto& [address, each] = live;
    rows.push_back({action, device_, address, bytes(each.size),
                    std::min(each.requested_size, bytes(each.size)), each.stream, each.pool,
                    each.stack});
}

void TorchDevice::emit_free(const Lives::value_type& live) {
    if (!live.second.is_pending) emit_live(history_->after, Action::free_requested, live);
    emit_live(history_->after, Action::free_completed, live);
}

}  // namespace gpuviz::formats
