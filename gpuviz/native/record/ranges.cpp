#include "record/ranges.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "record/clock.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {

Ranges::Ranges(ActivityLog& log) noexcept : log_(log), made_ns_(now_ns()) {}

void Ranges::set_clock(std::function<std::int64_t()> clock) {
    const std::lock_guard lock(mutex_);
    clock_ = std::move(clock);
}

std::int64_t Ranges::time_ns() const { return clock_ ? clock_() : now_ns(); }

std::uint32_t Ranges::begin(std::string_view name, RangeKind kind, std::uint64_t domain) noexcept {
    return add(name, kind, domain, false);
}

std::uint32_t Ranges::begin_detached(std::string_view name, RangeKind kind) noexcept {
    return add(name, kind, no_domain, true);
}

std::uint32_t Ranges::add(std::string_view name, RangeKind kind, std::uint64_t domain,
                          bool is_detached) noexcept {
    if (!recording_.load(std::memory_order_relaxed)) {
        return 0;
    }
    const std::uint32_t name_id = log_.strings.intern(name);
    try {
        const std::lock_guard lock(mutex_);
        if (!recording_) {
            return 0;
        }
        Thread* thread = is_detached ? nullptr : &calling_thread();
        const std::uint32_t id = last_id_ + 1;
        const RangeRow row{
            .id = id,
            .time = log_.since_start(time_ns()),
            .end = -1,
            .name = name_id,
            .kind = kind,
            .thread = current_thread_id(),
            .parent = thread == nullptr || thread->open.empty() ? 0 : thread->open.back().id,
        };
        if (thread != nullptr) {
            thread->open.reserve(thread->open.size() + 1);
        }
        open_.emplace(id, OpenRange{row, thread});
        if (thread != nullptr) {
            thread->open.push_back({id, domain});
            thread->current.store(id, std::memory_order_relaxed);
            any_.store(true, std::memory_order_relaxed);
        }
        last_id_ = id;
        log_.ranges.append(row);
        return id;
    } catch (const std::exception&) {
        return 0;
    }
}

void Ranges::end(std::uint32_t id) noexcept {
    if (id == 0 || !recording_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard lock(mutex_);
    end_locked(id, time_ns());
}

void Ranges::pop(std::uint64_t domain) noexcept {
    if (!recording_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard lock(mutex_);
    const auto thread = by_thread_id_.find(current_thread_id());
    if (thread == by_thread_id_.end()) {
        return;
    }
    const std::vector<Open>& open = thread->second->open;
    const auto innermost = std::find_if(open.rbegin(), open.rend(),
                                        [&](const Open& range) { return range.domain == domain; });
    if (innermost != open.rend()) {
        end_locked(innermost->id, time_ns());
    }
}

std::size_t Ranges::depth(std::uint64_t domain) noexcept {
    const std::lock_guard lock(mutex_);
    const auto thread = by_thread_id_.find(current_thread_id());
    if (thread == by_thread_id_.end()) {
        return 0;
    }
    return std::size_t(std::ranges::count(thread->second->open, domain, &Open::domain));
}

void Ranges::stop() noexcept {
    const std::lock_guard lock(mutex_);
    recording_ = false;
    any_ = false;
    const std::int64_t stopped_ns = time_ns();
    while (!open_.empty()) {
        end_locked(open_.begin()->first, stopped_ns);
    }
}

void Ranges::end_locked(std::uint32_t id, std::int64_t end_ns) noexcept {
    const auto found = open_.find(id);
    if (found == open_.end()) {
        return;
    }
    RangeRow row = found->second.row;
    row.end = std::max(row.time, log_.since_start(end_ns));  // the clock may have been replaced
    log_.ranges.append(row);
    if (found->second.thread != nullptr) {
        leave(*found->second.thread, id);
    }
    open_.erase(found);
}

void Ranges::leave(Thread& thread, std::uint32_t id) noexcept {
    const auto last = std::find_if(thread.open.rbegin(), thread.open.rend(),
                                   [&](const Open& range) { return range.id == id; });
    thread.open.erase(std::next(last).base());
    thread.current.store(thread.open.empty() ? 0 : thread.open.back().id,
                         std::memory_order_relaxed);
}

std::uint32_t Ranges::current_of_new_thread() noexcept {
    try {
        const std::lock_guard lock(mutex_);
        return calling_thread().current.load(std::memory_order_relaxed);
    } catch (const std::exception&) {
        return 0;
    }
}

Ranges::Thread& Ranges::calling_thread() {
    Thread*& thread = by_thread_id_[current_thread_id()];
    if (thread == nullptr) {
        thread = &threads_.emplace_back();
    }
    cache() = {this, made_ns_, thread};
    return *thread;
}

}  // namespace gpuviz::record
