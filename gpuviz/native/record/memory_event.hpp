#pragma once

#include <cstddef>
#include <cstdint>

#include "record/codes.hpp"

namespace gpuviz::record {

inline constexpr std::size_t action_count = action_names.size();

// The numbers, in MemoryEvent::pool, of pools beside that of the recorded allocator: torch's own,
// which those of its private pools follow, the blocks of RMM's memory resources, and what JAX uses.
inline constexpr std::uint32_t torch_owner = std::uint32_t{1} << 20;
inline constexpr std::uint32_t rmm_owner = torch_owner - 1;
inline constexpr std::uint32_t jax_owner = torch_owner - 2;

// A row of the table `memory_events`.
//
// alloc, free_*: `size` is the block's (rounded) size, `requested_size` the caller's.
// segment_*: `size` is what was allocated, freed, mapped or unmapped; `requested_size` is 0.
// oom: `address` is the device's free memory, `size` the rounded size, `requested_size` the
// caller's. `framework` is the block's owner; of segments, who asked for memory. record_stream:
// `stream` is the stream that uses the block. empty_cache: `size` is the bytes released by the
// segment_free and segment_unmap before it. memory_limit: `size` is the most bytes that may be
// reserved from now on, the device's memory if there is no limit.
struct alignas(64) MemoryEvent {  // one cache line
    std::int64_t time_ns;         // of clock.hpp
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t requested_size;
    std::uint64_t stream;  // raw handle
    std::uint32_t stack;   // 0: not captured
    std::uint32_t
        pool;  // 2 * n + (1 if large); n is 0 for the default pool, else the MemPool's number
    std::uint32_t thread;  // the operating system's thread id
    std::uint32_t range;   // 0: outside every range
    std::uint16_t device;
    Action action;
    bool completed = false;  // of a free_requested: the record also stands for its free_completed
    Framework framework = Framework::none;
    std::uint8_t reserved[3] = {};
};
static_assert(sizeof(MemoryEvent) == 64);

// Calls `take` with each row of a record: one, or two for a completed free.
template <typename Take>
void for_each_row(const MemoryEvent& record, Take&& take) {
    take(record);
    if (record.completed) {
        MemoryEvent second = record;
        second.action = Action::free_completed;
        take(second);
    }
}

// Receives the events of one device in order. Implementations: the ring of a recording, and a
// vector in replays. push() runs with the allocator's lock held.
class MemoryEventSink {
  public:
    virtual ~MemoryEventSink() = default;
    virtual void push(const MemoryEvent& event) noexcept = 0;
};

// A sink between an allocator and the sink of a recording, which may change or be absent.
class MemoryEventRelay : public MemoryEventSink {
  public:
    void set_next(MemoryEventSink* next) noexcept { next_ = next; }

  protected:
    void pass_on(const MemoryEvent& event) noexcept {
        if (next_ != nullptr) {
            next_->push(event);
        }
    }

  private:
    MemoryEventSink* next_ = nullptr;
};

// The origin of an event.
struct CallSite {
    std::uint32_t stack = 0;
    std::uint32_t thread = 0;
    std::uint32_t range = 0;
    Framework framework = Framework::none;
};

}  // namespace gpuviz::record
