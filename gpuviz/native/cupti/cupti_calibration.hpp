#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuviz::cupti {

// Calls of the driver of each kind, to measure how long they take with and without a tracer.
//
// They use a stream, an event, a kernel that does nothing and a few bytes of memory of their own,
// in the current context of the calling thread, which all calls must come from.
class CalibrationCalls {
  public:
    // The kinds of `Manifest.costs`, in order.
    enum Kind : std::uint8_t { launch, copy, event_record, stream_wait, synchronize };
    static constexpr std::size_t kinds = 5;

    // Throws std::runtime_error if there is no current context, or if the driver refuses.
    CalibrationCalls();
    CalibrationCalls(const CalibrationCalls&) = delete;
    CalibrationCalls& operator=(const CalibrationCalls&) = delete;
    ~CalibrationCalls();

    // The median time of a call of each kind in ns. Before each, the processor reads so many bytes,
    // as the program that calls does.
    [[nodiscard]] std::array<std::int64_t, kinds> measure(std::size_t bytes_between, int calls);

  private:
    struct Driver;

    void create();
    void release() noexcept;
    CUresult call(Kind kind);
    void check(CUresult result, const char* name) const;

    const Driver& driver_;
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    CUstream stream_ = nullptr;
    CUevent event_ = nullptr;
    CUdeviceptr memory_ = 0;
    std::vector<std::uint64_t> read_between_;
    std::uint64_t sum_ = 0;  // of what was read, so that reading is not optimized away
};

}  // namespace gpuviz::cupti
