#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "record/activity_log.hpp"
#include "record/address_filter.hpp"
#include "record/memory_event.hpp"
#include "record/stream_calls.hpp"

namespace gpuviz::record {

// Finds what the host writes to pinned memory while a copy from it is pending: compares the memory
// as it was when the copy was enqueued with what it is when the program waits for the copy, copies
// from the memory again, or frees it. A difference becomes a row of `host_accesses`.
//
// Whether the program knew by then that the copy was complete is not judged here. Thread-safe. The
// number of copies and bytes that are compared is bounded; the others are counted.
class PinnedSources {
  public:
    struct Copy {
        std::uint64_t stream;
        std::uint64_t address;
        std::uint64_t bytes;
        std::uint32_t correlation;
    };
    // What the program does at the moment of a comparison.
    struct Moment {
        std::int64_t time_ns;
        CallSite site;
    };

    explicit PinnedSources(ActivityLog& log) : log_(log) {}

    // Memory exists, until `removed`, which must be called before it is returned to anybody.
    void added(std::uint64_t address, std::uint64_t size) noexcept;
    void removed(std::uint64_t address, const Moment& moment) noexcept;

    // Whether the copy is from or to such memory.
    [[nodiscard]] bool contains(const Copy& copy) noexcept;
    // Whether copies are waited for; one load.
    [[nodiscard]] bool has_pending() const noexcept { return pending_count_.load() != 0; }

    // A call has enqueued a copy from such memory.
    void copied(const Copy& copy, const Moment& moment) noexcept;
    // A call has recorded an event, or destroyed one.
    void followed(const StreamCall& call) noexcept;
    // A call is about to wait, or has learned that what it asked for is complete.
    void waits(const StreamCall& call, const Moment& moment) noexcept;
    // Compares everything; nothing is pending afterwards.
    void finish(const Moment& moment) noexcept;

    // Whether the calling thread reads memory for a comparison, which is no access of the program.
    [[nodiscard]] bool is_reading() const noexcept;

    // Copies that were not compared because there were too many, and the time spent.
    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_.load(); }
    [[nodiscard]] std::int64_t cost_ns() const noexcept { return cost_ns_.load(); }

  private:
    class Reading;
    struct Pending {
        Copy copy;
        std::uint64_t number;  // ascending
        std::uint64_t content;
    };
    struct Record {
        std::uint64_t stream;
        std::uint64_t number;  // it covers the copies of its stream with lower numbers
    };

    // The following require the lock.
    [[nodiscard]] bool is_block(std::uint64_t address, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool can_afford(const Moment& moment) noexcept;
    template <typename IsChosen>
    void compare(const Moment& moment, IsChosen&& is_chosen);
    void report(const Copy& copy, const Moment& moment) noexcept;

    ActivityLog& log_;
    AddressFilter filter_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> blocks_;  // size by address
    std::deque<Pending> pending_;
    std::unordered_map<std::uint64_t, Record> records_;  // by event
    std::uint64_t copies_ = 0;
    std::uint64_t bytes_read_ = 0;
    std::int64_t first_ns_ = 0;
    std::atomic<std::uint32_t> reader_{0};  // a thread; 0: none
    std::atomic<std::size_t> pending_count_{0};
    std::atomic<std::uint64_t> skipped_{0};
    std::atomic<std::int64_t> cost_ns_{0};
};

}  // namespace gpuviz::record
