#include "record/pinned_sources.hpp"

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

bool overlap(const PinnedSources::Copy& copy, std::uint64_t start, std::uint64_t stop) noexcept {
    return copy.address < stop && start < copy.address + copy.bytes;
}

}  // namespace

// While a thread reads memory, which a signal handler of that thread wants to know.
class PinnedSources::Reading {
  public:
    explicit Reading(PinnedSources& sources) noexcept : sources_(sources) {
        sources_.reader_ = current_thread_id();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
        sources_.reader_ = 0;
        sources_.cost_ns_ += now_ns() - began_ns_;
    }

  private:
    PinnedSources& sources_;
    std::int64_t began_ns_ = now_ns();
};

bool PinnedSources::is_reading() const noexcept { return reader_ == current_thread_id(); }

void PinnedSources::added(std::uint64_t address, std::uint64_t size) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        blocks_.insert_or_assign(address, size);
        filter_.add(address, size);
    } catch (const std::exception&) {
        return;  // copies from there are not compared
    }
}

void PinnedSources::removed(std::uint64_t address, const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) {
        return;
    }
    const std::uint64_t stop = address + block->second;
    compare(moment, [&](const Pending& each) { return overlap(each.copy, address, stop); });
    blocks_.erase(block);
}

bool PinnedSources::contains(const Copy& copy) noexcept {
    if (!filter_.may_contain(copy.address)) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    return is_block(copy.address, copy.bytes);
}

void PinnedSources::copied(const Copy& copy, const Moment& moment) noexcept {
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

void PinnedSources::followed(const StreamCall& call) noexcept {
    const std::lock_guard lock(mutex_);
    records_.erase(call.event);
    const bool is_needed = std::any_of(pending_.begin(), pending_.end(), [&](const Pending& each) {
        return each.copy.stream == call.stream;
    });
    if (call.kind != StreamCall::Kind::event_record || !is_needed) {
        return;
    }
    try {
        records_[call.event] = {call.stream, copies_ + 1};
    } catch (const std::exception&) {
        return;  // waits for the event compare nothing
    }
}

void PinnedSources::waits(const StreamCall& call, const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    if (call.kind == StreamCall::Kind::event_synchronize) {
        const auto found = records_.find(call.event);
        if (found == records_.end()) {
            return;
        }
        const Record record = found->second;
        compare(moment, [&](const Pending& each) {
            return each.copy.stream == record.stream && each.number < record.number;
        });
        return;
    }
    // The legacy default stream, which all synchronous calls use, waits for others.
    const bool is_one = call.kind == StreamCall::Kind::stream_synchronize && call.stream != 0;
    compare(moment,
            [&](const Pending& each) { return !is_one || each.copy.stream == call.stream; });
}

void PinnedSources::finish(const Moment& moment) noexcept {
    const std::lock_guard lock(mutex_);
    compare(moment, [](const Pending&) { return true; });
    blocks_.clear();
}

bool PinnedSources::is_block(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
        return false;
    }
    const auto& [begin, size] = *std::prev(after);
    const std::uint64_t offset = address - begin;
    return offset < size && bytes <= size - offset;
}

bool PinnedSources::can_afford(const Moment& moment) noexcept {
    if (first_ns_ == 0) {
        first_ns_ = moment.time_ns;
    }
    const auto elapsed_us =
        std::uint64_t(std::max<std::int64_t>(moment.time_ns - first_ns_, 0)) / 1000;
    return bytes_read_ < free_bytes + elapsed_us * bytes_per_us;
}

template <typename IsChosen>
void PinnedSources::compare(const Moment& moment, IsChosen&& is_chosen) {
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
            report(each.copy, moment);
        }
        return true;
    });
    pending_count_ = pending_.size();
}

void PinnedSources::report(const Copy& copy, const Moment& moment) noexcept {
    log_.host_accesses.append({.time = log_.since_start(moment.time_ns),
                               .mode = AccessMode::write,
                               .correlation = copy.correlation,
                               .address = copy.address,
                               .bytes = copy.bytes,
                               .stack = moment.site.stack,
                               .thread = moment.site.thread,
                               .exact = 0});
}

}  // namespace gpuviz::record
