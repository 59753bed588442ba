#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "record/activity_log.hpp"
#include "record/address_filter.hpp"
#include "record/codes.hpp"
#include "record/memory_event.hpp"
#include "record/stream_calls.hpp"
#include "record/watchpoint.hpp"

namespace gpuviz::record {

// Finds what the host does to pinned memory while a copy from or to it is pending. What becomes a
// row of `host_accesses`:
// - a difference between the memory that a copy reads, as it was when the copy was enqueued, and
// what
//   it is when the program waits for the copy, copies from the memory again, or frees it;
// - an access to the first bytes of the memory that a copy fills, by the thread that made the copy.
//
// Whether the program knew by then that the copy was complete is not judged here. Thread-safe. The
// number of copies and bytes that are looked after is bounded; the others are counted.
class PinnedCopies {
  public:
    struct Copy {
        std::uint64_t stream;
        std::uint64_t address;
        std::uint64_t bytes;
        std::uint32_t correlation;
    };
    // What the program does when something is found.
    struct Moment {
        std::int64_t time_ns;
        CallSite site;
    };

    explicit PinnedCopies(ActivityLog& log) : log_(log) {}

    // Memory exists, until `removed`, which must be called before it is returned to anybody.
    void added(std::uint64_t address, std::uint64_t size) noexcept;
    void removed(std::uint64_t address, const Moment& moment) noexcept;

    // Whether the copy is from or to such memory.
    [[nodiscard]] bool contains(const Copy& copy) noexcept;
    // Whether copies are waited for; one load.
    [[nodiscard]] bool has_pending() const noexcept {
        return pending_count_.load() != 0 || is_watching();
    }

    // A call has enqueued a copy from such memory.
    void copied(const Copy& copy, const Moment& moment) noexcept;
    // A call has enqueued a copy to such memory, which the calling thread may access too early.
    void filled(const Copy& copy) noexcept;
    // A call has recorded an event, or destroyed one.
    void followed(const StreamCall& call) noexcept;
    // A call is about to wait, or has learned that what it asked for is complete.
    void waits(const StreamCall& call, const Moment& moment) noexcept;
    // Whether memory is watched; one load. If so, `is_accessed` is called before each CUDA call,
    // and `pass_over` after those that access memory themselves.
    [[nodiscard]] bool is_watching() const noexcept { return watched_count_.load() != 0; }
    // Whether the calling thread has accessed watched memory, which `accessed` then reports.
    [[nodiscard]] bool is_accessed() noexcept;
    void accessed(const Moment& moment) noexcept;
    void pass_over() noexcept;

    // Compares everything; nothing is pending afterwards.
    void finish(const Moment& moment) noexcept;

    // Whether the calling thread reads memory for a comparison, which is no access of the program.
    [[nodiscard]] bool is_reading() const noexcept;

    // Copies whose memory was not compared because there were too many, and not watched for that
    // reason or because the system does not allow it; and the time spent.
    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_.load(); }
    [[nodiscard]] std::uint64_t unwatched() const noexcept { return unwatched_.load(); }
    [[nodiscard]] std::int64_t cost_ns() const noexcept { return cost_ns_.load(); }

  private:
    class Reading;
    struct Pending {
        Copy copy;
        std::uint64_t number;   // ascending
        std::uint64_t content;  // of a copy from the memory
    };
    // A copy to memory.
    struct Watched {
        Copy copy;
        std::uint64_t number;
        std::uint32_t thread;
        Watchpoint watchpoint;
        Watchpoint::Counts found{};
    };
    struct Record {
        std::uint64_t stream;
        std::uint64_t number;  // it covers the copies of its stream with lower numbers
    };

    // The following require the lock.
    [[nodiscard]] bool is_block(std::uint64_t address, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool can_afford(const Moment& moment) noexcept;
    [[nodiscard]] bool can_watch(std::int64_t now_ns) noexcept;
    template <typename IsChosen>
    void compare(const Moment& moment, IsChosen&& is_chosen);
    // The end of what the program may access too early.
    template <typename IsChosen>
    void end_watching(const Moment& moment, IsChosen&& is_chosen);
    [[nodiscard]] bool look() noexcept;
    void pass_over_locked() noexcept;
    void report_accesses(const Moment& moment) noexcept;
    void report(const Copy& copy, AccessMode mode, const Moment& moment) noexcept;

    ActivityLog& log_;
    AddressFilter filter_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> blocks_;  // size by address
    std::deque<Pending> pending_;
    std::deque<Watched> watched_;
    std::unordered_map<std::uint64_t, Record> records_;  // by event
    std::uint64_t copies_ = 0;
    std::uint64_t bytes_read_ = 0;
    std::int64_t first_ns_ = 0;
    std::int64_t watching_ns_ = 0;
    std::atomic<std::uint32_t> reader_{0};  // a thread; 0: none
    std::atomic<std::size_t> pending_count_{0};
    std::atomic<std::size_t> watched_count_{0};
    std::atomic<std::uint64_t> skipped_{0};
    std::atomic<std::uint64_t> unwatched_{0};
    std::atomic<std::int64_t> cost_ns_{0};
};

}  // namespace gpuviz::record
