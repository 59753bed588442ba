#include <algorithm>
#include <iterator>

#include "state/device_memory.hpp"
#include "state/overlap.hpp"

namespace gpuviz::state {

namespace {

Segment segment_of(const DeviceEvent& event, bool is_expandable) noexcept {
    return {event.size, event.time_ns, event.stream, event.pool, event.stack, is_expandable};
}

// Whether the event maps more pages of the run that it touches. The range of addresses of an
// expandable segment is larger than the device, so that two of them never touch. Their streams may
// differ: one that got the handle of a destroyed stream goes on with its segment.
bool is_same_run(const Segment& run, const DeviceEvent& event) noexcept {
    return run.is_expandable && run.pool == event.pool;
}

}  // namespace

void DeviceMemory::add_segment(const DeviceEvent& event) {
    ++totals_.num_device_alloc;
    if (event.size == 0) {
        ++anomalies_;
        return;
    }
    evict_segments(event.address, event.end());
    evict_live(event.address, event.end());
    const auto segment = segments_.insert_or_assign(event.address, segment_of(event, false)).first;
    add_inactive(event.address, event.size, segment->second);
    seen_segment_ = true;
    totals_.change(Quantity::segment, event.pool, 1);
    totals_.change(Quantity::reserved_bytes, event.pool, bytes(event.size));
}

void DeviceMemory::free_segment(const DeviceEvent& event) {
    ++totals_.num_device_free;
    const auto segment = segments_.find(event.address);
    if (segment == segments_.end() || segment->second.is_expandable) {
        ++anomalies_;
        return;
    }
    if (segment->second.size != event.size) ++anomalies_;
    release_segment(segment);
}

void DeviceMemory::release_segment(Segments::iterator segment) {
    const auto [address, removed] = *segment;
    evict_live(address, address + removed.size);
    const auto block = blocks_.find(address);
    uncount_free_block(block->second);
    blocks_.erase(block);
    segments_.erase(segment);
    totals_.change(Quantity::segment, removed.pool, -1);
    totals_.change(Quantity::reserved_bytes, removed.pool, -bytes(removed.size));
}

void DeviceMemory::map_pages(const DeviceEvent& event) {
    ++totals_.num_device_alloc;
    if (event.size == 0) {
        ++anomalies_;
        return;
    }
    evict_segments(event.address, event.end());
    evict_live(event.address, event.end());
    auto run = segments_.insert_or_assign(event.address, segment_of(event, true)).first;
    if (run != segments_.begin()) {
        const auto previous = std::prev(run);
        const bool touches = previous->first + previous->second.size == event.address;
        if (touches && is_same_run(previous->second, event)) {
            previous->second.size += event.size;
            segments_.erase(run);
            run = previous;
        }
    }
    const auto next = std::next(run);
    if (next != segments_.end() && next->first == event.end() && is_same_run(next->second, event)) {
        run->second.size += next->second.size;
        if (next->second.time_ns < run->second.time_ns) {
            run->second.time_ns = next->second.time_ns;
            run->second.stack = next->second.stack;
        }
        segments_.erase(next);
    }
    seen_segment_ = true;
    add_inactive(event.address, event.size, run->second);
    totals_.change(Quantity::reserved_bytes, event.pool, bytes(event.size));
}

void DeviceMemory::unmap_pages(const DeviceEvent& event) {
    ++totals_.num_device_free;
    const auto run = first_overlapping(segments_, event.address);
    const bool covers = event.size > 0 && run != segments_.end() && run->second.is_expandable &&
                        run->first <= event.address && run->first + run->second.size >= event.end();
    if (!covers) {
        ++anomalies_;
        return;
    }
    cut_run(run, event.address, event.end());
}

void DeviceMemory::cut_run(Segments::iterator run, std::uint64_t address, std::uint64_t end) {
    evict_live(address, end);
    const Segment old_run = run->second;
    const std::uint64_t run_end = run->first + old_run.size;
    if (address > run->first) {
        run->second.size = address - run->first;
    } else {
        segments_.erase(run);
    }
    if (end < run_end) {
        Segment rest = old_run;
        rest.size = run_end - end;
        segments_.emplace(end, rest);
    }
    const auto block = find_covering(address, end);
    const Block old_block = block->second;
    const std::uint64_t block_start = block->first;
    uncount_free_block(old_block);
    blocks_.erase(block);
    if (address > block_start) add_inactive(block_start, address - block_start, old_run);
    const std::uint64_t block_end = block_start + old_block.size;
    if (end < block_end) add_inactive(end, block_end - end, old_run);
    totals_.change(Quantity::reserved_bytes, old_run.pool, -bytes(end - address));
}

void DeviceMemory::evict_segments(std::uint64_t address, std::uint64_t end) {
    auto segment = first_overlapping(segments_, address);
    while (segment != segments_.end() && segment->first < end) {
        ++anomalies_;
        if (segment->second.is_expandable) {
            const std::uint64_t segment_end = segment->first + segment->second.size;
            cut_run(segment, std::max(address, segment->first), std::min(end, segment_end));
        } else {
            release_segment(segment);
        }
        segment = first_overlapping(segments_, address);
    }
}

}  // namespace gpuviz::state
