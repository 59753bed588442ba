#include "record/pinned_copies.hpp"

#include <algorithm>
#include <exception>
#include <iterator>

#include "record/clock.hpp"
#include "record/host_content.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {
namespace {

constexpr std::size_t most_pending = 256;
// What may be read: at some 10 GB/s for memory that is not cached, 2 % of the time.
constexpr std::uint64_t free_bytes = 64 << 20;
constexpr std::uint64_t bytes_per_us = 200;
// A watchpoint takes two of a thread's four debug registers, and 35 us to make and to remove each.
constexpr std::size_t most_watched = 2;
constexpr std::uint64_t watched_bytes = 8;
constexpr std::int64_t free_watching_ns = 5'000'000;
constexpr std::int64_t watching_part = 100;  // of all time afterwards

std::int64_t thread_ns() noexcept { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

bool overlap(const PinnedCopies::Copy& copy, std::uint64_t start, std::uint64_t stop) noexcept {
    return copy.address < stop && start < copy.address + copy.bytes;
}

}  // namespace

// While a thread reads memory, which a signal handler of that thread wants to know.
class PinnedCopies::Reading {
  public:
    explicit Reading(PinnedCopies& sources) noexcept : sources_(sources) {
        sources_.reader_ = current_thread_id();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
        sources_.reader_ = 0;
        sources_.pass_over_locked();  // what this thread has read itself
        sources_.cost_ns_ += now_ns() - began_ns_;
    }

  private:
    PinnedCopies& sources_;
    std::int64_t began_ns_ = now_ns();
};

bool PinnedCopies::is_reading() const noexcept { return reader_ == current_thread_id(); }

void PinnedCopies::added(std::uint64_t address, std::uint64_t size) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        blocks_.insert_or_assign(address, size);
        filter_.add(address, size);
    } catch (const std::exception&) {
        return;  // copies from there are not compared
    }
}

void PinnedCopies::removed(std::uint64_t address, const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) {
        return;
    }
    const std::uint64_t stop = address + block->second;
    const auto is_there = [&](const auto& each) { return overlap(each.copy, address, stop); };
    end_watching(moment, is_there);
    compare(moment, is_there);
    blocks_.erase(block);
}

bool PinnedCopies::contains(const Copy& copy) noexcept {
    if (!filter_.may_contain(copy.address)) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    return is_block(copy.address, copy.bytes);
}

void PinnedCopies::copied(const Copy& copy, const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t stop = copy.address + copy.bytes;
    if (copy.bytes == 0 || !is_block(copy.address, copy.bytes)) {
        return;
    }
    compare(moment, [&](const Pending& each) { return overlap(each.copy, copy.address, stop); });
    if (pending_.size() == most_pending || !can_afford(moment)) {
        ++skipped_;
        return;
    }
    const Reading reading(*this);
    bytes_read_ += std::min(copy.bytes, most_content);
    try {
        pending_.push_back({copy, ++copies_, content(copy.address, copy.bytes)});
    } catch (const std::exception&) {
        ++skipped_;
    }
    pending_count_ = pending_.size();
}

void PinnedCopies::filled(const Copy& copy) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t start = (copy.address + watched_bytes - 1) / watched_bytes * watched_bytes;
    const std::uint64_t stop = copy.address + copy.bytes;
    if (start + watched_bytes > stop || !is_block(copy.address, copy.bytes)) {
        return;
    }
    // Whoever waits for the later copy has waited for the earlier one of the stream.
    const std::uint32_t thread = current_thread_id();
    const auto again = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& each) {
        return each.copy.address == copy.address && each.thread == thread;
    });
    if (again != watched_.end()) {
        again->copy = copy;
        again->number = ++copies_;
        return;
    }
    if (watched_.size() == most_watched || !can_watch(now_ns())) {
        ++unwatched_;
        return;
    }
    const std::int64_t began_ns = thread_ns();
    Watchpoint watchpoint(start);
    const std::int64_t took_ns = thread_ns() - began_ns;
    cost_ns_ += took_ns;
    watching_ns_ += 2 * took_ns;  // its end costs as much
    try {
        if (watchpoint.is_counting()) {
            watched_.push_back({copy, ++copies_, thread, std::move(watchpoint)});
            watched_count_ = watched_.size();
            return;
        }
    } catch (const std::exception&) {
    }
    ++unwatched_;
}

bool PinnedCopies::is_accessed() noexcept {
    const std::lock_guard lock(mutex_);
    const std::int64_t began_ns = now_ns();
    const bool is_found = look();
    cost_ns_ += now_ns() - began_ns;
    return is_found;
}

void PinnedCopies::accessed(const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    report_accesses(moment);
}

void PinnedCopies::pass_over() noexcept {
    const std::lock_guard lock(mutex_);
    pass_over_locked();
}

void PinnedCopies::pass_over_locked() noexcept {
    for (Watched& each : watched_) {
        if (each.thread == current_thread_id()) {
            each.watchpoint.take();
        }
    }
}

void PinnedCopies::followed(const StreamCall& call) noexcept {
    const std::lock_guard lock(mutex_);
    records_.erase(call.event);
    const auto is_of_stream = [&](const auto& each) { return each.copy.stream == call.stream; };
    const bool is_needed = std::any_of(pending_.begin(), pending_.end(), is_of_stream) ||
                           std::any_of(watched_.begin(), watched_.end(), is_of_stream);
    if (call.kind != StreamCall::Kind::event_record || !is_needed) {
        return;
    }
    try {
        records_[call.event] = {call.stream, copies_ + 1};
    } catch (const std::exception&) {
        return;  // waits for the event compare nothing
    }
}

void PinnedCopies::waits(const StreamCall& call, const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    if (call.kind == StreamCall::Kind::event_synchronize) {
        const auto found = records_.find(call.event);
        if (found == records_.end()) {
            return;
        }
        const Record record = found->second;
        const auto is_before = [&](const auto& each) {
            return each.copy.stream == record.stream && each.number < record.number;
        };
        end_watching(moment, is_before);
        compare(moment, is_before);
        return;
    }
    // The legacy default stream, which all synchronous calls use, waits for others.
    const bool is_one = call.kind == StreamCall::Kind::stream_synchronize && call.stream != 0;
    const auto is_awaited = [&](const auto& each) {
        return !is_one || each.copy.stream == call.stream;
    };
    end_watching(moment, is_awaited);
    compare(moment, is_awaited);
}

void PinnedCopies::finish(const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    watched_.clear();  // no line is known that accesses them
    watched_count_ = 0;
    compare(moment, [](const Pending&) { return true; });
    blocks_.clear();
}

bool PinnedCopies::is_block(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
        return false;
    }
    const auto& [begin, size] = *std::prev(after);
    const std::uint64_t offset = address - begin;
    return offset < size && bytes <= size - offset;
}

bool PinnedCopies::can_afford(const Moment& moment) noexcept {
    if (first_ns_ == 0) {
        first_ns_ = moment.time_ns;
    }
    const auto elapsed_us =
        std::uint64_t(std::max<std::int64_t>(moment.time_ns - first_ns_, 0)) / 1000;
    return bytes_read_ < free_bytes + elapsed_us * bytes_per_us;
}

bool PinnedCopies::can_watch(std::int64_t now_ns) noexcept {
    if (first_ns_ == 0) {
        first_ns_ = now_ns;
    }
    return watching_ns_ < free_watching_ns + (now_ns - first_ns_) / watching_part;
}

bool PinnedCopies::look() noexcept {
    bool is_found = false;
    for (Watched& each : watched_) {
        if (each.thread == current_thread_id()) {
            const Watchpoint::Counts counts = each.watchpoint.take();
            each.found.reads += counts.reads;
            each.found.writes += counts.writes;
            is_found |= each.found.reads + each.found.writes != 0;
        }
    }
    return is_found;
}

template <typename IsChosen>
void PinnedCopies::end_watching(const Moment& moment, IsChosen&& is_chosen) {
    if (watched_.empty()) {
        return;
    }
    if (look()) {
        report_accesses(moment);
    }
    std::erase_if(watched_, is_chosen);
    watched_count_ = watched_.size();
}

void PinnedCopies::report_accesses(const Moment& moment) noexcept {
    std::erase_if(watched_, [&](const Watched& each) {
        const auto [reads, writes] = each.found;
        // Who reads it again and again waits for what it says.
        if (reads != 0 && reads + writes < Watchpoint::most_counted) {
            report(each.copy, AccessMode::read, moment);
        }
        if (writes != 0) {
            report(each.copy, AccessMode::write, moment);
        }
        return reads + writes != 0;
    });
    watched_count_ = watched_.size();
}

template <typename IsChosen>
void PinnedCopies::compare(const Moment& moment, IsChosen&& is_chosen) {
    if (pending_.empty()) {
        return;
    }
    const Reading reading(*this);
    std::erase_if(pending_, [&](const Pending& each) {
        if (!is_chosen(each)) {
            return false;
        }
        bytes_read_ += std::min(each.copy.bytes, most_content);
        if (content(each.copy.address, each.copy.bytes) != each.content) {
            report(each.copy, AccessMode::write, moment);
        }
        return true;
    });
    pending_count_ = pending_.size();
}

void PinnedCopies::report(const Copy& copy, AccessMode mode, const Moment& moment) noexcept {
    log_.host_accesses.append({.time = log_.since_start(moment.time_ns),
                               .mode = mode,
                               .correlation = copy.correlation,
                               .address = copy.address,
                               .bytes = copy.bytes,
                               .stack = moment.site.stack,
                               .thread = moment.site.thread,
                               .exact = 0});
}

}  // namespace gpuviz::record
