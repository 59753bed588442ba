#include "replay/replay_outcome.hpp"

#include "allocator/size_classes.hpp"

namespace gpuviz::replay {

using record::Action;

void ReplayOutcome::begin(std::int64_t origin) noexcept {
    origin_ = origin;
    if (!has_begun_ && origin >= initial_events_) {
        has_begun_ = true;
        notice_levels();
    }
}

void ReplayOutcome::push(const record::MemoryEvent& event) noexcept {
    record::for_each_row(event, [this](const record::MemoryEvent& row) {
        change_levels(row);
        if (has_begun_) {
            count_call(row);
            notice_levels();
        }
    });
}

void ReplayOutcome::change_levels(const record::MemoryEvent& event) noexcept {
    const auto size = static_cast<std::int64_t>(event.size);
    switch (event.action) {
        case Action::alloc:
            allocated_ += size;
            active_ += size;
            break;
        case Action::free_requested:
            allocated_ -= size;
            break;
        case Action::free_completed:
            active_ -= size;
            break;
        case Action::segment_alloc:
        case Action::segment_map:
            reserved_ += size;
            break;
        case Action::segment_free:
        case Action::segment_unmap:
            reserved_ -= size;
            break;
        case Action::oom:
            if (failures++ == 0) {
                first_failure = origin_;
            }
            break;
        default:
            break;
    }
}

void ReplayOutcome::count_call(const record::MemoryEvent& event) noexcept {
    const auto size = static_cast<std::int64_t>(event.size);
    const std::uint64_t page = event.pool % 2 == 1 ? large_page_ : allocator::kSmallBuffer;
    const auto pages = static_cast<std::int64_t>((event.size + page - 1) / page);
    switch (event.action) {
        case Action::segment_alloc:
            ++segments_made;
            bytes_made += size;
            break;
        case Action::segment_free:
            ++segments_released;
            bytes_released += size;
            break;
        case Action::segment_map:
            pages_mapped += pages;
            break;
        case Action::segment_unmap:
            pages_unmapped += pages;
            break;
        default:
            break;
    }
}

void ReplayOutcome::notice_levels() noexcept {
    if (allocated_ > peak_allocated) {
        peak_allocated = allocated_;
        active_at_peak = active_;
        reserved_at_peak = reserved_;
    }
    if (reserved_ > peak_reserved) {
        peak_reserved = reserved_;
        peak_reserved_origin = origin_;
    }
}

}  // namespace gpuviz::replay
