#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "allocator/allocator.hpp"
#include "device/offline_device.hpp"
#include "device/simulated_device.hpp"
#include "replay/replay_log.hpp"
#include "replay/replay_program.hpp"

namespace gpuviz::replay {

struct ReplayResult {
    std::size_t operations = 0;  // executed
    std::int64_t elapsed_ns = 0;
    std::vector<device::Address> addresses;         // of each malloc in order; 0: out of memory
    std::vector<allocator::Statistics> statistics;  // at each `stats`
};

// Executes a program on an allocator. run() is called once, from one thread; stop() may be called
// from another.
class Replayer {
  public:
    // The program must be valid, and all arguments must outlive the replayer. Creates the pools.
    // `sink`, if given, gets the row of the recording that each operation repeats.
    Replayer(const ReplayProgram& program, device::OfflineDevice& device,
             allocator::Allocator& allocator, ReplaySink* sink = nullptr);

    // `speed` 1 keeps the program's times, 2 halves the pauses; 0 removes them. A program without
    // times has no pauses.
    ReplayResult run(double speed);
    // Ends run() before its next operation.
    void stop();

  private:
    [[nodiscard]] record::Framework framework_of(std::size_t row) const noexcept;
    void carry_out(std::size_t row, ReplayResult& result);
    void allocate(std::size_t row, const record::CallSite& site, ReplayResult& result);
    [[nodiscard]] device::Address try_allocate(std::uint64_t size, device::StreamHandle stream,
                                               const record::CallSite& site);
    void free(std::size_t row, const record::CallSite& site);
    void set_expandable(bool on);
    void restore_segment(std::size_t row, const record::CallSite& site);
    void restore_block(std::size_t row, const record::CallSite& site);
    [[nodiscard]] bool wait_until(std::int64_t time_ns);

    const ReplayProgram& program_;
    device::OfflineDevice& device_;
    allocator::Allocator& allocator_;
    device::SimulatedDevice* simulated_;  // the device, if it is one
    ReplaySink* sink_;
    device::StreamHandle restored_stream_ = 0;  // of the segment that is being restored
    std::uint64_t gap_ = 0;                     // before its next block
    device::Address place_ = 0;                 // of the last `place`
    std::vector<std::uint64_t> pools_;
    std::vector<device::Address> blocks_;  // by id; 0: out of memory
    std::mutex mutex_;
    std::condition_variable stopping_;
    std::atomic<bool> stopped_ = false;
};

}  // namespace gpuviz::replay
