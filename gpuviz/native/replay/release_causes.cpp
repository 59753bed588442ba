#include "replay/release_causes.hpp"

#include <algorithm>

#include "allocator/size_classes.hpp"

namespace gpuviz::replay {

using record::Action;

namespace {

bool is_segment_change(Action action) {
    return action >= Action::segment_alloc && action <= Action::segment_unmap;
}

bool is_added(Action action) {
    return action == Action::segment_alloc || action == Action::segment_map;
}

std::uint64_t initial_limit(const RecordedProgram& recorded) {
    const auto fraction = recorded.settings.per_process_memory_fraction;
    if (recorded.capacity == 0 || !fraction) return recorded.capacity;
    return static_cast<std::uint64_t>(*fraction * static_cast<double>(recorded.capacity));
}

}  // namespace

std::optional<Run> RunReader::next() {
    if (row_ >= events_.count()) return std::nullopt;
    Run run;
    while (row_ < events_.count()) {
        const std::size_t row = row_++;
        skip_other_devices();
        const Action action = action_of(events_, row);
        if (action == Action::free_completed || is_segment_change(action)) {
            const bool is_initial = row < initial_events_ && is_segment_change(action);
            if (!is_initial) run.internal.push_back(row);
            continue;
        }
        run.last = row;
        if (action == Action::free_requested && row_ < events_.count() &&
            action_of(events_, row_) == Action::free_completed &&
            events_.address[row_] == events_.address[row]) {
            run.completes_at_once = true;
            ++row_;
            skip_other_devices();
        }
        break;
    }
    return run;
}

ReleaseCauses::ReleaseCauses(const RecordedEvents& events, const RecordedProgram& recorded)
    : events_(events), recorded_(recorded), limit_(initial_limit(recorded)) {
    for (std::size_t row = 0; row < std::min(recorded.initial_events, events.count()); ++row) {
        if (events.device[row] == events.device_id && is_added(action_of(events, row))) {
            reserved_ += unsigned_size(events.size[row]);
        }
    }
    if (!recorded.lacks_calls) return;
    const std::uint64_t initially_reserved = reserved_;
    look_through();
    reserved_ = initially_reserved;
}

void ReleaseCauses::look_through() {
    RunReader runs(events_, recorded_.initial_events);
    std::vector<std::uint64_t> bounds;
    while (const std::optional<Run> run = runs.next()) {
        notice(*run, bounds);
        change_reserved(*run);
    }
    if (limit_ > 0) return;
    for (const std::uint64_t bound : bounds) {
        if (bound >= most_reserved_ && most_reserved_ > 0) {
            inferred_limit_ = std::min(bound, inferred_limit_.value_or(bound));
        }
    }
    limit_ = inferred_limit_.value_or(0);
}

void ReleaseCauses::notice(const Run& run, std::vector<std::uint64_t>& bounds) {
    bool is_last_own = false;  // whether the last release has its own stack
    for (const std::size_t row : run.internal) {
        const Action action = action_of(events_, row);
        if (is_release(action)) is_last_own = has_own_stack(row);
        stacks_tell_ = stacks_tell_ || is_last_own;
        if (is_added(action)) {
            segment_stacks_.insert_or_assign(events_.address[row], events_.stack[row]);
        }
    }
    if (!run.last) return;
    const Action action = action_of(events_, *run.last);
    if (action == Action::oom) {
        std::uint64_t reserved = reserved_;
        for (const std::size_t row : run.internal) {
            const std::uint64_t size = unsigned_size(events_.size[row]);
            if (is_release(action_of(events_, row))) reserved -= std::min(size, reserved);
        }
        const std::uint64_t segment = allocator::segment_size(
            unsigned_size(events_.size[*run.last]), recorded_.settings.large_segment_size);
        const std::uint64_t free = events_.address[*run.last];
        bounds.push_back(reserved + (free > 0 && segment > free ? free : segment - 1));
        return;
    }
    const auto released = releases(run);
    if (action == Action::alloc && released && is_last_own &&
        events_.stack[run.internal[released->last]] == events_.stack[*run.last] &&
        recorded_.settings.garbage_collection_threshold == 0) {
        const std::uint64_t segment = needed_segment(run, released->last);
        if (segment > 0) bounds.push_back(reserved_ + segment - 1);
    }
}

Cause ReleaseCauses::of(const Run& run) {
    const Action action = run.last ? action_of(events_, *run.last) : Action::snapshot;
    if (action == Action::memory_limit) limit_ = unsigned_size(events_.size[*run.last]);
    const auto released = releases(run);
    Cause cause;
    if (released && recorded_.lacks_calls && !is_caused_by_request(run, *released)) {
        cause = {.is_call = true, .first = released->first, .calls_end = released->last + 1};
    } else if (recorded_.lacks_calls && action != Action::alloc && action != Action::oom &&
               !run.internal.empty()) {
        // Only a request and empty_cache look for frees that have completed.
        cause = {.is_call = true, .first = 0, .calls_end = run.internal.size()};
    } else {
        cause.completes_frees = action == Action::oom || action == Action::empty_cache ||
                                (released && !is_oversize_release(run) &&
                                 (!is_garbage_collection(run) || is_retry(run, *released)));
    }
    change_reserved(run);
    return cause;
}

void ReleaseCauses::change_reserved(const Run& run) {
    for (const std::size_t row : run.internal) {
        const std::uint64_t size = unsigned_size(events_.size[row]);
        const Action action = action_of(events_, row);
        if (is_added(action)) reserved_ += size;
        if (is_release(action)) reserved_ -= std::min(size, reserved_);
        most_reserved_ = std::max(most_reserved_, reserved_);
    }
}

std::optional<ReleaseCauses::Releases> ReleaseCauses::releases(const Run& run) const {
    std::optional<Releases> found;
    for (std::size_t at = 0; at < run.internal.size(); ++at) {
        const std::size_t row = run.internal[at];
        if (!is_release(action_of(events_, row)) || events_.pool[row] / 2 != 0) continue;
        if (!found) found = Releases{at, at};
        found->last = at;
    }
    return found;
}

// Not that of the segment, which torch repeats if it records no stacks of frees.
bool ReleaseCauses::has_own_stack(std::size_t row) const {
    const auto segment = segment_stacks_.find(events_.address[row]);
    return events_.stack[row] != 0 && segment != segment_stacks_.end() &&
           segment->second != events_.stack[row];
}

bool ReleaseCauses::is_caused_by_request(const Run& run, const Releases& released) const {
    if (!run.last) return false;
    const Action action = action_of(events_, *run.last);
    if (action != Action::alloc && action != Action::oom) return false;
    const std::uint32_t stack = events_.stack[run.internal[released.last]];
    const bool tells = stacks_tell_ && stack != 0;
    if (tells && stack != events_.stack[*run.last]) return false;
    if (action == Action::oom) return !would_have_hit(run);
    const std::uint64_t segment = needed_segment(run, released.last);
    if (segment == 0 || would_have_hit(run)) return false;
    if (limit_ == 0) return tells;
    return is_retry(run, released) || is_garbage_collection(run);
}

// Whether the request failed at first, even after garbage collection, which goes on until it has
// released enough or all there is.
bool ReleaseCauses::is_retry(const Run& run, const Releases& released) const {
    std::uint64_t collected = 0;
    if (is_garbage_due()) {
        for (const std::size_t row : run.internal) {
            const bool is_collected =
                action_of(events_, row) == Action::segment_free && events_.pool[row] == 1;
            collected += is_collected ? unsigned_size(events_.size[row]) : 0;
        }
        collected = std::min(collected, reserved_ - garbage_limit());
    }
    return reserved_ - collected + needed_segment(run, released.last) > limit_;
}

std::uint64_t ReleaseCauses::garbage_limit() const {
    return static_cast<std::uint64_t>(recorded_.settings.garbage_collection_threshold *
                                      static_cast<double>(limit_));
}

bool ReleaseCauses::is_garbage_due() const {
    return recorded_.settings.garbage_collection_threshold > 0 && reserved_ > garbage_limit();
}

bool ReleaseCauses::is_garbage_collection(const Run& run) const {
    return is_garbage_due() && std::ranges::all_of(run.internal, [&](std::size_t row) {
               const Action action = action_of(events_, row);
               return action != Action::segment_unmap &&
                      (action != Action::segment_free || events_.pool[row] == 1);
           });
}

// Whether the request only needed the release of large blocks of its own stream.
bool ReleaseCauses::is_oversize_release(const Run& run) const {
    return run.last && std::ranges::all_of(run.internal, [&](std::size_t row) {
               const Action action = action_of(events_, row);
               if (!is_release(action)) return true;
               return action == Action::segment_free &&
                      unsigned_size(events_.size[row]) >= recorded_.settings.max_split_size &&
                      events_.stream[row] == events_.stream[*run.last] &&
                      events_.pool[row] == events_.pool[*run.last];
           });
}

bool ReleaseCauses::would_have_hit(const Run& run) const {
    const std::size_t request = *run.last;
    const allocator::Settings& settings = recorded_.settings;
    const std::uint64_t size = allocator::round_size(unsigned_size(events_.requested_size[request]),
                                                     settings.roundup_power2_divisions);
    const auto fits = [&](std::uint64_t released) {
        if (released < size) return false;
        if (size < settings.max_split_size) return released < settings.max_split_size;
        return released < size + settings.max_non_split_rounding_size;
    };
    const auto was_pending = [&](std::size_t segment) {
        return std::ranges::any_of(run.internal, [&](std::size_t row) {
            return action_of(events_, row) == Action::free_completed &&
                   events_.address[row] - events_.address[segment] <
                       unsigned_size(events_.size[segment]);
        });
    };
    return std::ranges::any_of(run.internal, [&](std::size_t row) {
        return action_of(events_, row) == Action::segment_free &&
               events_.stream[row] == events_.stream[request] &&
               events_.pool[row] == events_.pool[request] &&
               fits(unsigned_size(events_.size[row])) && !was_pending(row);
    });
}

// The segment or pages that a request needed after the release at a position; 0 if none.
std::uint64_t ReleaseCauses::needed_segment(const Run& run, std::size_t after) const {
    for (std::size_t at = after + 1; at < run.internal.size(); ++at) {
        const std::size_t row = run.internal[at];
        if (is_added(action_of(events_, row))) return unsigned_size(events_.size[row]);
    }
    return 0;
}

}  // namespace gpuviz::replay
