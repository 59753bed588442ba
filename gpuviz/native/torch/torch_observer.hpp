#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "allocator/size_classes.hpp"
#include "record/memory_event.hpp"
#include "record/session.hpp"
#include "torch/device_memory.hpp"

namespace gpuviz::torch {

// An entry of torch's trace. gpuviz/frameworks/torch_tracker.cpp, which is compiled with torch's
// headers, declares the same.
struct TraceEntry {
    std::int32_t action;  // of record::Action
    std::int32_t device;
    std::uint64_t address;  // of an oom: the device's free memory
    std::uint64_t size;     // of a block: the bytes requested; of a segment: its size
    std::uint64_t stream;   // raw handle
    std::uint64_t pool[2];  // torch's MempoolId_t
};

// A segment of torch's allocator, or a run of mapped pages.
struct Segment {
    int device;
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t stream;
    std::pair<std::uint64_t, std::uint64_t> pool;
    bool is_large;
    bool is_expandable;
};

struct Block {
    int device;
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t requested_size;
    bool is_pending;  // freed, but still in use on a stream
};

// Turns the trace of torch's caching allocator into a recording's events.
//
// The trace has the sizes that were requested; torch's rules for splitting give those of the
// blocks, as in formats::TorchDevice. Thread-safe. trace() is called with torch's lock held, mostly
// without the GIL, and never waits for it.
class TorchObserver {
  public:
    // The owner of the pool of torch's blocks, in MemoryEvent::pool; those of its private pools
    // follow.
    static constexpr std::uint32_t first_owner = record::torch_owner;

    TorchObserver(std::uint64_t max_split_size, const allocator::RoundupDivisions& divisions)
        : sizes_{max_split_size, divisions} {}
    TorchObserver(const TorchObserver&) = delete;
    TorchObserver& operator=(const TorchObserver&) = delete;

    // The tracker's function; `self` is a TorchObserver.
    static void trace(void* self, const TraceEntry* entry) noexcept;

    // Forgets what is known, and sends events to this session from now on; null ends this.
    void set_session(record::Session* session, bool stacks);
    // Pushes the state of the allocator before the first entry, without what entries have changed
    // since set_session(). To be called once after it.
    void describe(const std::vector<Segment>& segments, const std::vector<Block>& blocks);

    // Pushes how the state differs from the one known so far. For where no tracker can be attached:
    // what came and went in between is missing. After describe().
    void update(const std::vector<Segment>& segments, const std::vector<Block>& blocks);

    // Sizes that a library requests for memory to work in. Blocks of such a request are noted as
    // workspaces from now on; of those that exist already, only those of the first size, which
    // should be one that few others have.
    void set_workspaces(std::vector<std::uint64_t> sizes);

    [[nodiscard]] std::vector<int> devices() const;

    // To be called in the child of a fork, where another thread may have held the lock.
    void abandon() noexcept;

  private:
    using Pool = std::pair<std::uint64_t, std::uint64_t>;

    void take(const TraceEntry& entry) noexcept;
    void add_segments(const std::vector<Segment>& segments);
    void add_blocks(const std::vector<Block>& blocks);
    void remove_blocks(const std::vector<Block>& remaining);
    void remove_segments(const std::vector<Segment>& remaining);
    void grow_runs(const std::vector<Segment>& segments);
    void push_of_home(record::Action action, int device, std::uint64_t address, std::uint64_t size,
                      const DeviceMemory::Home& home);
    void push_of_block(record::Action action, int device, std::uint64_t address,
                       const DeviceMemory::Live& live) noexcept;
    void note_workspace(const record::MemoryEvent& event);
    [[nodiscard]] std::uint32_t owner_of(const Pool& pool);
    [[nodiscard]] record::MemoryEvent new_event(record::Action action, int device) const noexcept;
    void push(const record::MemoryEvent& event) noexcept;

    const BlockSizes sizes_;
    std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // for what follows
    std::map<int, DeviceMemory> devices_;
    std::map<Pool, std::uint32_t> owners_;
    std::vector<std::uint64_t> workspaces_;
    record::Session* session_ = nullptr;
    bool stacks_ = true;
    std::atomic<bool> is_recording_{false};
};

}  // namespace gpuviz::torch
