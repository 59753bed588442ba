#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace gpuviz::cupti {

// An executable graph whose nodes are all known: its number, and that of the capture it comes from.
struct CapturedGraph {
    std::uint32_t number = 0;  // 0: not all nodes are known
    std::uint32_t capture = 0;
};

// The stream captures of a program, and the executable graphs made of them. Thread-safe.
//
// Whether all nodes of a graph are known is decided by their number: the driver's must be that of
// the captured calls whose accesses were seen. Child graphs, host functions, memory nodes and nodes
// added by hand make the difference.
class CuptiCaptures {
  public:
    // Opens the driver, which is already loaded. If it lacks the functions, no capture is seen.
    CuptiCaptures();

    // Whether any stream may be capturing; without, calls need not be examined.
    [[nodiscard]] bool is_any_open() const noexcept {
        return open_.load(std::memory_order_relaxed) != 0;
    }
    void began() noexcept { ++open_; }
    void ended() noexcept;

    // The number of the capture that the stream records into, from 1; 0 if it does not. The call
    // became a node whose accesses are known, or none.
    [[nodiscard]] std::uint32_t captured(CUstream stream, bool is_known_node);

    // Whether the stream records into a capture, whose graph records the event when it runs.
    bool records_event(CUstream stream, std::uint64_t event);

    // Calls are not seen for a while: afterwards no graph is known, and any stream may be
    // capturing.
    void forget() noexcept;

    void instantiated(CUgraph graph, CUgraphExec executable);
    [[nodiscard]] CapturedGraph graph_of(CUgraphExec executable);
    // The events that the graph records each time it runs, as far as captures say.
    [[nodiscard]] std::vector<std::uint64_t> events_of(CUgraphExec executable);
    // The handle may denote another graph from now on.
    void destroyed(CUgraph graph);
    // The program changed nodes of some graph: none is known any more. Returns the events that
    // graphs recorded, and may still.
    std::vector<std::uint64_t> changed();

  private:
    struct Capture {
        cuuint64_t id = 0;  // the driver's, never reused
        std::uint32_t number = 0;
        std::size_t nodes = 0;
        std::vector<std::uint64_t> events;
    };
    // The capture that the stream records into, which `mutex_` guards; null if it does not.
    [[nodiscard]] Capture* capture_of(CUstream stream);

    CUresult (*capture_info_)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                              const CUgraphNode**, std::size_t*) = nullptr;
    CUresult (*nodes_)(CUgraph, CUgraphNode*, std::size_t*) = nullptr;
    std::atomic<int> open_{0};
    std::mutex mutex_;  // guards the members below
    std::unordered_map<CUgraph, Capture> captures_;
    std::unordered_map<CUgraphExec, CapturedGraph> graphs_;
    std::unordered_map<CUgraphExec, std::vector<std::uint64_t>> events_;
    std::uint32_t capture_count_ = 0;
    std::uint32_t graph_count_ = 0;
};

}  // namespace gpuviz::cupti
