#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "hazards/capture.hpp"
#include "hazards/codes.hpp"
#include "hazards/hazard.hpp"
#include "hazards/history.hpp"
#include "hazards/order.hpp"

namespace gpuviz::hazards {

// Neither addresses nor sizes of blocks are greater, so that ends do not overflow.
constexpr std::uint64_t last_address = std::uint64_t(1) << 62;

struct Options {
    bool cuda_free_synchronizes = true;
    bool pageable_download_blocks = false;
    bool strict_threads = false;
    bool unknown_may_write = true;  // else only if the other access writes
};

enum class Memory : std::uint8_t { device, pinned };

using EventId = std::uint32_t;
using GraphId = std::uint32_t;
using ThreadId = std::uint32_t;

// Who frees and reuses a block.
enum class Allocator : std::uint8_t { cuda, caching, private_pool, stream_ordered };

struct Allocation {
    OperationId operation = 0;  // 0: cannot be part of a hazard
    Allocator allocator = Allocator::cuda;
    Memory memory = Memory::device;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Slot stream = Order::legacy;  // of an allocator that has streams
    ThreadId thread = 0;
};

struct Copy {
    CopyKind kind = CopyKind::device_to_device;
    bool is_synchronous = false;
    bool is_pageable = false;      // its host memory
    std::optional<Device> peer{};  // of a copy between devices: the one that is not the stream's
};

// Reports hazards of the operations that a program issues, one after the other.
//
// Accesses give bytes of their block, from 0. Ids of objects that do not exist, or no longer, throw
// std::invalid_argument. Not thread-safe. Memory is bounded by streams, live blocks, and the blocks
// and graphs that the caller has not released.
class Engine {
  public:
    explicit Engine(Options options = {});

    [[nodiscard]] Slot create_stream(StreamKind kind, Device device = 0);
    [[nodiscard]] Slot legacy_stream(Device device) { return order_.legacy_of(device); }
    void destroy_stream(Slot stream);
    [[nodiscard]] EventId create_event();
    void destroy_event(EventId event);

    void launch(OperationId operation, ThreadId thread, Slot stream,
                std::span<const Access> accesses, bool programmatic = false);
    // The stream of a synchronous copy or memset is a default stream. A copy between devices in a
    // default stream is ordered as if it were in those of both, which was tried on two H100.
    void copy(OperationId operation, ThreadId thread, Slot stream, Copy copy,
              std::span<const Access> accesses);
    void memset(OperationId operation, ThreadId thread, Slot stream, bool is_synchronous,
                std::span<const Access> accesses);
    void host_access(OperationId operation, ThreadId thread, std::span<const Access> accesses);

    void record_event(ThreadId thread, EventId event, Slot stream);
    void wait_event(ThreadId thread, Slot stream, EventId event);
    // Also for queries that return success.
    void synchronize_event(ThreadId thread, EventId event);
    void synchronize_stream(ThreadId thread, Slot stream);
    void synchronize_device(ThreadId thread, Device device);
    void synchronize_all(ThreadId thread);
    // The stream waits for something unknown, perhaps for all work so far.
    void wait_for_unknown(ThreadId thread, Slot stream);
    void write_value(ThreadId thread, Slot stream, std::uint64_t address);
    void wait_value(ThreadId thread, Slot stream, std::uint64_t address);

    [[nodiscard]] BlockId allocate(const Allocation& allocation);
    void record_stream(BlockId block, Slot stream);
    void free(OperationId operation, ThreadId thread, BlockId block);
    void free_async(OperationId operation, ThreadId thread, BlockId block, Slot stream);
    void cuda_free(ThreadId thread, BlockId block);
    // The caller will not name a freed block again.
    void release(BlockId block);

    void begin_capture(Slot stream);
    [[nodiscard]] GraphId end_capture(Slot stream);
    [[nodiscard]] GraphId create_graph(std::span<const Access> accesses);
    // Another executable graph of the same capture.
    [[nodiscard]] GraphId instantiate(GraphId graph);
    void launch_graph(OperationId operation, ThreadId thread, GraphId graph, Slot stream);

    // The hazards found since the last call.
    [[nodiscard]] std::vector<Hazard> take();
    [[nodiscard]] bool has_hazards() const noexcept {
        return !hazards_.empty() || !doubts_.empty();
    }

  private:
    struct Block {
        std::uint32_t generation = 0;
        bool is_live = false;
        bool is_released = false;
        bool is_graph_memory = false;  // allocated by a node of a graph
        bool freed_async = false;
        bool is_in_graph = false;
        Allocation of;
        OperationId freed_by = 0;
        Moment allocated;  // if stream-ordered
        Extent* extent = nullptr;
        std::vector<Slot> recorded;
    };
    struct Event {
        bool exists = true;
        bool is_recorded = false;
        Clock clock;
        std::shared_ptr<Capture> capture;  // that recorded it last
    };
    struct Graph {
        std::vector<Access> accesses;  // of addresses
        Clock last_launch;
    };
    struct Value {
        bool is_written = false;
        Clock clock;
        std::vector<Moment> early_waits;  // enqueued before the first write
    };
    // A conflict whose first operation waits for a value that may be written after the second.
    struct Doubt {
        Moment first;
        Moment second;
        Hazard hazard;
    };

    Block& live_block(BlockId id);
    Block* find(BlockId id);
    [[nodiscard]] bool is_live(BlockId id) const;
    Event& event_of(EventId id);
    Graph& graph_of(GraphId id);
    void check_stream(Slot stream) const;
    // The capture that the stream records into; null if it does not.
    Capture* capture_of(Slot stream);

    // The strongest accesses, with addresses for bytes.
    const std::vector<Access>& placed(std::span<const Access> accesses);
    void prefetch(const std::vector<Access>& accesses);
    void enqueue(OperationId operation, ThreadId thread, Slot stream,
                 std::span<const Access> accesses, bool programmatic = false);
    void add_node(OperationId operation, Capture& capture, Slot stream,
                  const std::vector<Access>& accesses, bool programmatic);
    [[nodiscard]] bool waits_early(Moment moment) const;
    template <typename IsAfter>
    void check_past(HazardsOfOperation& found, const Access& access, std::uint64_t base,
                    const Extent& extent, IsAfter&& is_after);
    template <typename IsAfter>
    void check(HazardsOfOperation& found, const std::vector<Access>& accesses, IsAfter&& is_after);
    template <typename IsAfter>
    void check_lifetime(HazardsOfOperation& found, const Access& access, const Block& block,
                        IsAfter&& is_after);
    void check_owners(HazardsOfOperation& found, const Access& access);
    template <typename IsAfter>
    void check_free(HazardsOfOperation& found, Tier tier, BlockId id, IsAfter&& is_after);
    void remember(OperationId operation, Moment moment, const std::vector<Access>& accesses);

    void end(Block& block, OperationId operation, Release release);
    void reuse_slot_of(BlockId id);
    void forget_settled();
    GraphId add_graph(std::vector<Access> accesses);

    Options options_;
    Order order_;
    History history_;
    std::vector<Block> blocks_;
    std::vector<std::uint32_t> unused_blocks_;
    std::vector<Event> events_;
    std::vector<EventId> unused_events_;
    std::vector<Graph> graphs_;
    std::unordered_map<Slot, std::shared_ptr<Capture>> captures_;
    std::unordered_map<std::uint64_t, Value> values_;
    std::vector<Hazard> hazards_;
    std::vector<Doubt> doubts_;
    std::vector<Access> placed_;  // of the current operation
    std::vector<const Extent*> prefetched_;
    std::size_t forget_at_ = 1024;
};

}  // namespace gpuviz::hazards
