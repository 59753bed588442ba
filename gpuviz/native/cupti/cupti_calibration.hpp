#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuviz::cupti {

// Calls of the driver of each kind, to measure how long they take with and without a tracer.
//
// They use a stream, an event, a kernel that does nothing, a graph of it and a few bytes of memory
// of their own, in the current context of the calling thread, which all calls must come from.
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

    // Throws std::runtime_error if there is no current context, or if the driver refuses.
    CalibrationCalls();
    CalibrationCalls(const CalibrationCalls&) = delete;
    CalibrationCalls& operator=(const CalibrationCalls&) = delete;
    ~CalibrationCalls();

    // Makes one call, and waits for none that was made before; of a graph after measure().
    void make(Kind kind) const;
    // The median time in ns of a call of each kind, of so many that follow each other.
    [[nodiscard]] std::array<std::int64_t, kinds> measure(int calls);

  private:
    struct Driver;

    void create();
    void instantiate();
    void release() noexcept;
    CUresult call(Kind kind) const;
    void check(CUresult result, const char* name) const;

    const Driver& driver_;
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    CUstream stream_ = nullptr;
    CUevent event_ = nullptr;
    CUdeviceptr memory_ = 0;
    CUgraph graph_ = nullptr;
    CUgraphExec executable_ = nullptr;
};

}  // namespace gpuviz::cupti
