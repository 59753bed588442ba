#include "replay/recorded_operations.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "replay/release_causes.hpp"

namespace gpuviz::replay {

using record::Action;

namespace {

class Builder {
  public:
    Builder(const RecordedEvents& events, const StreamHandles& streams,
            const RecordedProgram& recorded)
        : events_(events),
          streams_(streams),
          recorded_(recorded),
          causes_(events, recorded),
          is_expandable_(recorded.settings.expandable_segments) {
        made_.program.pool_filter = recorded.pool_filter;
        made_.inferred_limit = causes_.inferred_limit();
        find_last_uses();
        reserve(events.count());
    }

    RecordedOperations build() {
        RunReader runs(events_, recorded_.initial_events);
        if (made_.inferred_limit && events_.count() > 0) {
            add(Operation::memory_limit, runs.first_row(), 0, *made_.inferred_limit, 0);
        }
        if (recorded_.keeps_settings) restore();
        while (const std::optional<Run> run = runs.next()) {
            repeat(*run);
        }
        finish_times();
        return std::move(made_);
    }

  private:
    struct Live {
        std::uint32_t id;
        std::uint32_t stream;
        bool has_uses;
    };

    void add(Operation operation, std::size_t row, std::uint32_t id, std::uint64_t argument,
             device::StreamHandle stream) {
        ReplayProgram& program = made_.program;
        program.operation.push_back(static_cast<std::uint8_t>(operation));
        program.id.push_back(id);
        program.argument.push_back(argument);
        program.stream.push_back(stream);
        program.stack.push_back(events_.stack[row]);
        program.thread.push_back(events_.thread[row]);
        program.framework.push_back(events_.framework[row]);
        program.time_ns.push_back(events_.time[row]);
        program.origin.push_back(static_cast<std::int64_t>(row));
    }

    // Most rows are an allocation, or a free and its completion.
    void reserve(std::size_t rows) {
        ReplayProgram& program = made_.program;
        program.operation.reserve(rows);
        program.id.reserve(rows);
        program.argument.reserve(rows);
        program.stream.reserve(rows);
        program.stack.reserve(rows);
        program.thread.reserve(rows);
        program.framework.reserve(rows);
        program.time_ns.reserve(rows);
        program.origin.reserve(rows);
    }

    void find_last_uses() {
        for (std::size_t row = 0; row < events_.count(); ++row) {
            const std::uint32_t owner = events_.pool[row] / 2;
            if (owner == 0 || events_.device[row] != events_.device_id) continue;
            std::size_t& last = last_uses_[owner];
            const Action action = action_of(events_, row);
            if (action == Action::alloc || action == Action::oom) last = row;
        }
    }

    // Events are in the order in which they happened, even if their times are not.
    void finish_times() {
        std::vector<std::int64_t>& times = made_.program.time_ns;
        std::int64_t latest = times.empty() ? 0 : times.front();
        const std::int64_t first = latest;
        for (std::int64_t& time : times) {
            latest = std::max(latest, time);
            time = latest - first;
        }
    }

    // The segments and blocks that existed before are where they were.
    void restore() {
        struct Segment {
            std::size_t row;
            std::map<std::uint64_t, std::size_t> blocks;  // rows by address
        };
        std::map<std::uint64_t, Segment> segments;  // by address
        const std::size_t end = std::min(recorded_.initial_events, events_.count());
        for (std::size_t row = 0; row < end; ++row) {
            const Action action = action_of(events_, row);
            const bool is_segment =
                action == Action::segment_alloc || action == Action::segment_map;
            if (events_.device[row] == events_.device_id && is_segment && events_.size[row] > 0) {
                segments.try_emplace(events_.address[row], Segment{row, {}});
            }
        }
        for (std::size_t row = 0; row < end; ++row) {
            const bool is_block = action_of(events_, row) == Action::alloc;
            if (events_.device[row] != events_.device_id || !is_block) continue;
            const std::uint64_t address = events_.address[row];
            const auto next = segments.upper_bound(address);
            if (next == segments.begin()) continue;
            const auto home = std::prev(next);
            if (address - home->first < unsigned_size(events_.size[home->second.row])) {
                home->second.blocks.try_emplace(address, row);
            }
        }
        for (const auto& [address, segment] : segments) {
            restore_segment(segment.row);
            std::uint64_t restored_end = address;
            for (const auto& [start, row] : segment.blocks) {
                if (start < restored_end) continue;
                if (start > restored_end) {
                    add(Operation::restore_gap, row, 0, start - restored_end, 0);
                }
                restored_end = start + unsigned_size(events_.size[row]);
                restore_block(row);
            }
        }
    }

    void restore_segment(std::size_t row) {
        const std::uint32_t owner = events_.pool[row] / 2;
        const std::uint64_t pool = owner == 0 ? 0 : pool_number(owner) + 1;
        add(Operation::place, row, 0, events_.address[row], 0);
        const bool is_map = action_of(events_, row) == Action::segment_map;
        if (is_map) mapped_[events_.address[row]] = unsigned_size(events_.size[row]);
        add(is_map ? Operation::restore_pages : Operation::restore_segment, row,
            static_cast<std::uint32_t>(2 * pool + events_.pool[row] % 2),
            unsigned_size(events_.size[row]), streams_.handle(events_.stream[row]));
    }

    void restore_block(std::size_t row) {
        restored_.insert(row);
        live_.insert_or_assign(events_.address[row], Live{blocks_, events_.stream[row], false});
        add(Operation::restore_block, row, blocks_++, unsigned_size(events_.size[row]),
            unsigned_size(events_.requested_size[row]));
    }

    void repeat(const Run& run) {
        const Cause cause = causes_.of(run);
        for (const std::size_t row : run.internal) {
            release_private_pool(row);
        }
        if (cause.is_call) {
            ++made_.inferred_calls;
            if (!recorded_.omits_calls) {
                add(Operation::empty_cache, run.internal[cause.first], 0, 0, 0);
            }
        }
        complete(run, 0, cause.calls_end);
        if (!cause.completes_frees) {
            complete(run, cause.calls_end, run.internal.size());
        }
        if (run.last) {
            prepare_segment(run, cause.calls_end);
            notice_pages(run);
            repeat_request(*run.last, run.completes_at_once);
        }
        if (cause.completes_frees) {
            complete(run, cause.calls_end, run.internal.size());
        }
    }

    // Without being asked for memory, only a pool that is not used any more returns its segments.
    void release_private_pool(std::size_t row) {
        const std::uint32_t owner = events_.pool[row] / 2;
        if (owner == 0 || !is_release(action_of(events_, row)) || last_uses_.at(owner) > row)
            return;
        if (released_.insert(owner).second) {
            add(Operation::release_pool, row, 0, pool_number(owner), 0);
        }
    }

    void complete(const Run& run, std::size_t first, std::size_t last) {
        for (std::size_t at = first; at < last; ++at) {
            const std::size_t row = run.internal[at];
            if (action_of(events_, row) != Action::free_completed) continue;
            const auto block = pending_.find(events_.address[row]);
            if (block == pending_.end()) continue;
            add(Operation::complete, row, block->second, 0, 0);
            pending_.erase(block);
        }
    }

    void prepare_segment(const Run& run, std::size_t first) {
        if (!recorded_.keeps_settings) return;
        for (std::size_t at = first; at < run.internal.size(); ++at) {
            const std::size_t row = run.internal[at];
            const Action action = action_of(events_, row);
            if (action != Action::segment_alloc && action != Action::segment_map) continue;
            const bool is_map = action == Action::segment_map;
            set_expandable(row, is_map);
            add(Operation::place, row, 0, events_.address[row], 0);
            return;
        }
    }

    // Only with the setting, a request takes pages of an expandable segment, or makes it grow.
    void set_expandable(std::size_t row, bool on) {
        if (on == is_expandable_ || !recorded_.keeps_settings) return;
        is_expandable_ = on;
        add(Operation::expandable, row, 0, on ? 1 : 0, 0);
    }

    void notice_pages(const Run& run) {
        for (const std::size_t row : run.internal) {
            const Action action = action_of(events_, row);
            if (action == Action::segment_map) {
                std::uint64_t& size = mapped_[events_.address[row]];
                size = std::max(size, unsigned_size(events_.size[row]));
            } else if (action == Action::segment_alloc) {
                mapped_.erase(events_.address[row]);
            }
        }
        if (mapped_.empty() || action_of(events_, *run.last) != Action::alloc) return;
        const auto after = mapped_.upper_bound(events_.address[*run.last]);
        if (after == mapped_.begin()) return;
        const auto [start, size] = *std::prev(after);
        if (events_.address[*run.last] - start < size) set_expandable(*run.last, true);
    }

    void repeat_request(std::size_t row, bool completes_at_once) {
        const std::uint64_t address = events_.address[row];
        const device::StreamHandle stream = streams_.handle(events_.stream[row]);
        switch (action_of(events_, row)) {
            case Action::alloc:
                if (restored_.contains(row)) return;
                live_.insert_or_assign(address, Live{blocks_, events_.stream[row], false});
                allocate(row, stream);
                return;
            case Action::oom:
                allocate(row, stream);
                add(Operation::free, row, blocks_ - 1, 0, stream);
                return;
            case Action::free_requested: {
                const auto block = live_.find(address);
                if (block == live_.end()) return;
                if (completes_at_once) {
                    add(Operation::free, row, block->second.id, 0, stream);
                } else {
                    add(Operation::free_pending, row, block->second.id, block->second.has_uses,
                        stream);
                    pending_.insert_or_assign(address, block->second.id);
                }
                live_.erase(block);
                return;
            }
            case Action::record_stream: {
                const auto block = live_.find(address);
                if (block == live_.end()) return;
                add(Operation::record_stream, row, block->second.id, 0, stream);
                block->second.has_uses |= stream != streams_.handle(block->second.stream);
                return;
            }
            case Action::empty_cache:
                add(Operation::empty_cache, row, 0, 0, 0);
                return;
            case Action::memory_limit:
                if (recorded_.keeps_limits) {
                    add(Operation::memory_limit, row, 0, limit_of(row), 0);
                }
                return;
            default:
                return;
        }
    }

    void allocate(std::size_t row, device::StreamHandle stream) {
        const std::uint32_t owner = events_.pool[row] / 2;
        const std::uint64_t number = owner == 0 ? 0 : pool_number(owner);
        if (owner != 0) add(Operation::begin_pool, row, 0, number, 0);
        add(Operation::malloc, row, blocks_++, unsigned_size(events_.requested_size[row]), stream);
        if (owner != 0) add(Operation::end_pool, row, 0, number, 0);
    }

    [[nodiscard]] std::uint64_t limit_of(std::size_t row) const {
        const std::uint64_t limit = unsigned_size(events_.size[row]);
        const bool is_none = recorded_.capacity > 0 && limit >= recorded_.capacity;
        return is_none ? std::numeric_limits<std::uint64_t>::max() : limit;
    }

    std::uint64_t pool_number(std::uint32_t owner) {
        const auto [entry, is_new] = numbers_.try_emplace(owner, made_.pools.size());
        if (is_new) made_.pools.push_back(owner);
        return entry->second;
    }

    const RecordedEvents& events_;
    const StreamHandles& streams_;
    const RecordedProgram& recorded_;
    ReleaseCauses causes_;
    RecordedOperations made_;
    std::unordered_map<std::uint64_t, Live> live_;              // by address
    std::set<std::size_t> restored_;                            // rows
    std::unordered_map<std::uint64_t, std::uint32_t> pending_;  // ids by address
    std::unordered_map<std::uint32_t, std::uint64_t> numbers_;  // of pools, by owner
    std::unordered_map<std::uint32_t, std::size_t> last_uses_;  // rows of requests, by owner
    std::set<std::uint32_t> released_;                          // owners
    std::map<std::uint64_t, std::uint64_t> mapped_;             // sizes by address
    std::uint32_t blocks_ = 0;
    bool is_expandable_;
};

}  // namespace

RecordedOperations recorded_operations(const RecordedEvents& events, const StreamHandles& streams,
                                       const RecordedProgram& recorded) {
    return Builder(events, streams, recorded).build();
}

}  // namespace gpuviz::replay
