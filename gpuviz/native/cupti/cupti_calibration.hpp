#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuviz::cupti {

// Calls of the driver of each kind, to measure how long they take with and without a tracer.
//
// They use a stream, events, kernels, graphs of them and a few bytes of memory of their own, in the
// current context of the calling thread, which all calls must come from.
class CalibrationCalls {
  public:
    // `read_back` is a copy to the host that waits.
    enum Kind : std::uint8_t {
        launch,
        copy,
        read_back,
        event_record,
        event_query,
        stream_wait,
        synchronize,
        graph_launch
    };
    static constexpr std::size_t kinds = 8;
    static constexpr int graph_nodes = 10;
    // Of the graph whose time on the GPU is measured.
    static constexpr int long_graph_nodes = 50;

    // Throws std::runtime_error if there is no current context, or if the driver refuses.
    CalibrationCalls();
    CalibrationCalls(const CalibrationCalls&) = delete;
    CalibrationCalls& operator=(const CalibrationCalls&) = delete;
    ~CalibrationCalls();

    // Makes one call, and waits for none that was made before; of a graph after measure().
    void make(Kind kind) const;
    // The median time in ns of a call of each kind, of so many that follow each other.
    [[nodiscard]] std::array<std::int64_t, kinds> measure(int calls);
    // The median time in ns that the GPU takes for a graph of `long_graph_nodes` kernels which
    // follow each other, of so many launches.
    [[nodiscard]] std::int64_t time_graph(int launches);

  private:
    struct Driver;
    struct Graph {
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
    };

    void create();
    [[nodiscard]] Graph make_graph(int nodes) const;
    void instantiate(Graph& graph) const;
    void release() noexcept;
    void release(const Graph& graph) const noexcept;
    CUresult call(Kind kind) const;
    CUresult launch_kernel(CUfunction kernel, std::uint64_t argument) const;
    void check(CUresult result, const char* name) const;

    const Driver& driver_;
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    CUfunction spin_ = nullptr;
    CUstream stream_ = nullptr;
    CUevent event_ = nullptr;
    CUdeviceptr memory_ = 0;
    Graph graph_;
    Graph long_graph_;
    CUevent began_ = nullptr;
    CUevent ended_ = nullptr;
};

}  // namespace gpuviz::cupti
