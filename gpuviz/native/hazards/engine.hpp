#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hazards/access_checker.hpp"
#include "hazards/blocks.hpp"
#include "hazards/captures.hpp"
#include "hazards/codes.hpp"
#include "hazards/events.hpp"
#include "hazards/hazard.hpp"
#include "hazards/history.hpp"
#include "hazards/order.hpp"
#include "hazards/stream_values.hpp"

namespace gpuviz::hazards {

// Neither addresses nor sizes of blocks are greater, so that ends do not overflow.
constexpr std::uint64_t last_address = std::uint64_t(1) << 62;

struct Options {
    bool cuda_free_synchronizes = true;
    bool pageable_download_blocks = false;
    bool strict_threads = false;
    bool unknown_may_write = true;  // else only if the other access writes
};

using GraphId = std::uint32_t;

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

    [[nodiscard]] Slot create_stream(StreamKind kind, Device device = 0) {
        return order_.create_stream(kind, device);
    }
    [[nodiscard]] Slot legacy_stream(Device device) { return order_.legacy_of(device); }
    void destroy_stream(Slot stream);
    [[nodiscard]] EventId create_event() { return events_.create(); }
    void destroy_event(EventId event) { events_.destroy(event); }

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
    void synchronize_all(ThreadId thread) { order_.synchronize_all(thread); }
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
    void release(BlockId block) { blocks_.release(block); }

    void begin_capture(Slot stream);
    [[nodiscard]] GraphId end_capture(Slot stream);
    [[nodiscard]] GraphId create_graph(std::span<const Access> accesses);
    // Another executable graph of the same capture.
    [[nodiscard]] GraphId instantiate(GraphId graph);
    void launch_graph(OperationId operation, ThreadId thread, GraphId graph, Slot stream);

    // The hazards found since the last call.
    [[nodiscard]] std::vector<Hazard> take();
    [[nodiscard]] bool has_hazards() const noexcept {
        return !hazards_.empty() || values_.has_doubts();
    }

  private:
    struct Graph {
        std::vector<Access> accesses;  // of addresses
        Clock last_launch;
    };

    Graph& graph_of(GraphId id);
    void check_stream(Slot stream) const;
    void enqueue(OperationId operation, ThreadId thread, Slot stream,
                 std::span<const Access> accesses, bool programmatic = false);
    void add_node(OperationId operation, Capture& capture, Slot stream,
                  const std::vector<Access>& accesses, bool programmatic);
    void end(Block& block, OperationId operation, Release release);
    void forget_settled();
    GraphId add_graph(std::vector<Access> accesses);

    Options options_;
    Order order_;
    History history_;
    Blocks blocks_;
    StreamValues values_;
    AccessChecker checker_;
    Events events_;
    Captures captures_;
    std::vector<Graph> graphs_;
    std::vector<Hazard> hazards_;
    std::size_t forget_at_ = 1024;
};

}  // namespace gpuviz::hazards
