#include "formats/torch_device.hpp"

#include <algorithm>
#include <iterator>

#include "state/device_memory.hpp"
#include "state/overlap.hpp"
#include "torch/homes.hpp"
#include "torch/pool_size.hpp"

namespace gpuviz::formats {

using record::Action;
using state::BlockState;

TorchDevice::TorchDevice(const TorchSnapshot& snapshot, const TorchRounding& rounding,
                         TorchHistory& history, std::int16_t device)
    : snapshot_(&snapshot),
      events_(&snapshot.events),
      rounding_(&rounding),
      history_(&history),
      device_(device) {
    take_segments();
    homes_ = last_homes_;
    lives_ = last_lives_;
}

void TorchDevice::take_segments() {
    const TorchSegments& segments = snapshot_->segments;
    const TorchBlocks& blocks = snapshot_->blocks;
    std::size_t block = 0;
    for (std::size_t row = 0; row < segments.count(); ++row) {
        const bool is_ours = segments.device[row] == device_;
        const auto kind = static_cast<SegmentKind>(segments.kind[row]);
        const std::uint32_t pool = pool_code(segments.pool[row], kind == SegmentKind::large);
        if (is_ours && kind != SegmentKind::unknown) {
            const Home home{unsigned_of(segments.size[row]), segments.stream[row], pool,
                            segments.stack[row], segments.is_expandable[row] != 0};
            last_homes_.insert_or_assign(segments.address[row], home);
        }
        for (; block < blocks.count() && blocks.segment[block] == row; ++block) {
            const auto state = static_cast<BlockState>(blocks.state[block]);
            if (!is_ours || state == BlockState::inactive) continue;
            const std::int64_t size = blocks.size[block];
            const Live live{unsigned_of(size),
                            std::min(blocks.requested_size[block], size),
                            segments.stream[row],
                            pool,
                            blocks.stack[block],
                            state == BlockState::active_pending_free,
                            true,
                            unsigned_of(size),
                            blocks.address[block] + unsigned_of(size)};
            last_lives_.insert_or_assign(blocks.address[block], live);
        }
    }
}

void TorchDevice::undo(std::size_t first, std::size_t last) {
    for (std::size_t row = last; row-- > first;) {
        switch (events_->action[row]) {
            case Action::alloc:
                undo_alloc(row);
                break;
            case Action::free_requested:
                undo_free(row, false);
                break;
            case Action::free_completed:
                undo_free(row, true);
                break;
            case Action::segment_alloc:
                undo_segment_alloc(row);
                break;
            case Action::segment_free:
                undo_segment_free(row);
                break;
            case Action::segment_map:
                undo_map(row);
                break;
            case Action::segment_unmap:
                undo_unmap(row);
                break;
            default:
                break;
        }
    }
}

void TorchDevice::undo_alloc(std::size_t row) {
    const auto block = lives_.find(events_->address[row]);
    if (block == lives_.end()) {
        ++history_->contradictions;
        return;
    }
    // For redo_alloc(): the size, or minus its upper bound.
    history_->size[row] = block->second.is_exact ? bytes(block->second.size)
                                                 : -bytes(block->second.limit - block->first);
    lives_.erase(block);
}

void TorchDevice::undo_free(std::size_t row, bool completed) {
    const std::uint64_t address = events_->address[row];
    const auto known = lives_.find(address);
    if (known != lives_.end()) {
        if (completed) ++history_->contradictions;
        known->second.is_pending = completed;
        return;
    }
    const std::uint64_t size = rounded(row);
    if (!make_room(address, address + size)) {
        ++history_->contradictions;
        return;
    }
    const auto home = torch::home_at(homes_, address);
    const auto next = lives_.lower_bound(address);
    const std::uint64_t limit = next == lives_.end() ? ~std::uint64_t{0} >> 1 : next->first;
    const std::uint32_t pool = home != homes_.end() ? home->second.pool : pool_of(row, size);
    const bool is_exact = events_->block_size[row] > 0;
    const auto block = lives_
                           .emplace(address, Live{size, events_->size[row], events_->stream[row],
                                                  pool, 0, completed, is_exact, size, limit})
                           .first;
    settle(block);
    if (block == lives_.begin()) return;
    const auto previous = std::prev(block);
    previous->second.limit = std::min(previous->second.limit, address);
    settle(previous);
}

// Shrinks a block of uncertain size to make room for another that began in it.
bool TorchDevice::make_room(std::uint64_t address, std::uint64_t end) {
    const auto block = state::first_overlapping(lives_, address);
    if (block == lives_.end() || block->first >= end) return true;
    Live& before = block->second;
    if (before.is_exact || block->first + before.least > address) return false;
    before.size = before.least;
    before.is_exact = true;
    return !is_taken(address, end);
}

// A large pool has no blocks of 1 MiB or less, allocated or free, so a smaller gap belongs to the
// block before it. A request of at least max_split_size gets a whole block.
void TorchDevice::settle(Lives::iterator block) {
    if (block->second.is_exact) return;
    const auto home = torch::home_at(homes_, block->first);
    if (home == homes_.end() || home->second.is_expandable || home->second.pool % 2 == 0) return;
    const auto next = std::next(block);
    const std::uint64_t home_end = home->first + home->second.size;
    const std::uint64_t next_start = next == lives_.end() ? home_end : next->first;
    const std::uint64_t limit = std::min({home_end, next_start, block->second.limit});
    const std::uint64_t block_end = block->first + block->second.size;
    const bool is_whole = block->second.least >= rounding_->max_split_size;
    if (limit > block_end && (is_whole || limit - block_end <= allocator::kMiB))
        block->second.size = limit - block->first;
}

void TorchDevice::undo_segment_alloc(std::size_t row) {
    const auto home = homes_.find(events_->address[row]);
    if (home == homes_.end() || home->second.is_expandable) {
        ++history_->contradictions;
        history_->pool[row] = pool_of(row, unsigned_of(events_->size[row]));
        return;
    }
    history_->pool[row] = home->second.pool;
    forget_live(home->first, home->first + home->second.size);
    homes_.erase(home);
}

void TorchDevice::undo_segment_free(std::size_t row) {
    const std::uint32_t pool = pool_of(row, unsigned_of(events_->size[row]));
    history_->pool[row] = pool;
    if (events_->size[row] == 0 || is_reserved(events_->address[row], end(row))) {
        ++history_->contradictions;
        return;
    }
    const Home home{unsigned_of(events_->size[row]), events_->stream[row], pool, 0, false};
    homes_.emplace(events_->address[row], home);
}

void TorchDevice::undo_map(std::size_t row) {
    const auto home = torch::home_at(homes_, events_->address[row]);
    history_->pool[row] =
        home != homes_.end() && home->second.is_expandable ? home->second.pool : run_pool(row);
    forget_live(events_->address[row], end(row));
    if (!torch::cut_run(homes_, events_->address[row], end(row))) ++history_->contradictions;
}

void TorchDevice::undo_unmap(std::size_t row) {
    const std::uint32_t pool = run_pool(row);
    history_->pool[row] = pool;
    if (events_->size[row] == 0 || is_reserved(events_->address[row], end(row))) {
        ++history_->contradictions;
        return;
    }
    const Home run{unsigned_of(events_->size[row]), events_->stream[row], pool, 0, true};
    torch::add_run(homes_, events_->address[row], run);
}

// The pool of the run that the range touches; without one, the pool for its size.
std::uint32_t TorchDevice::run_pool(std::size_t row) {
    const auto fits = [&](Homes::const_iterator run) {
        return run != homes_.end() && run->second.is_expandable &&
               run->second.stream == events_->stream[row];
    };
    const auto right = homes_.find(end(row));
    if (fits(right)) return right->second.pool;
    if (events_->address[row] > 0) {
        const auto left = torch::home_at(homes_, events_->address[row] - 1);
        if (fits(left)) return left->second.pool;
    }
    return pool_of(row, unsigned_of(events_->size[row]));
}

bool TorchDevice::is_taken(std::uint64_t address, std::uint64_t end) {
    const auto block = state::first_overlapping(lives_, address);
    return block != lives_.end() && block->first < end;
}

bool TorchDevice::is_reserved(std::uint64_t address, std::uint64_t end) {
    const auto home = state::first_overlapping(homes_, address);
    return home != homes_.end() && home->first < end;
}

void TorchDevice::forget_live(std::uint64_t address, std::uint64_t end) {
    auto block = state::first_overlapping(lives_, address);
    while (block != lives_.end() && block->first < end) {
        ++history_->contradictions;
        block = lives_.erase(block);
    }
}

std::uint64_t TorchDevice::rounded(std::size_t row) const {
    if (events_->block_size[row] > 0) return unsigned_of(events_->block_size[row]);
    return allocator::round_size(unsigned_of(events_->size[row]), rounding_->divisions);
}

std::uint64_t TorchDevice::end(std::size_t row) const {
    return events_->address[row] + unsigned_of(events_->size[row]);
}

std::uint32_t TorchDevice::pool_of(std::size_t row, std::uint64_t size) const {
    const SegmentKind kind = events_->kind[row];
    const bool is_large = kind == SegmentKind::unknown
                              ? torch::is_large_by_size(events_->action[row], size)
                              : kind == SegmentKind::large;
    return pool_code(events_->pool[row], is_large);
}

std::uint32_t TorchDevice::pool_code(std::uint32_t pool, bool is_large) const {
    return 2 * (pool == 0 ? 0 : history_->owners[pool - 1]) + (is_large ? 1 : 0);
}

}  // namespace gpuviz::formats
