#pragma once

#include <cstdint>

namespace gpuviz::record {

// Counts how often the thread that makes it reads and writes 8 bytes of memory, with two of the
// four debug registers that a thread has. Accesses of the operating system do not count, nor do
// those of other threads and of the GPU.
class Watchpoint {
  public:
    struct Counts {
        std::uint64_t reads = 0;
        std::uint64_t writes = 0;
    };

    // Whatever accesses the memory more often is not slowed down by further interrupts.
    static constexpr std::uint64_t most_counted = 32;

    // Watches the memory at a multiple of 8. Counts nothing if the system does not allow it.
    explicit Watchpoint(std::uint64_t address) noexcept;
    Watchpoint(Watchpoint&& other) noexcept;
    Watchpoint& operator=(Watchpoint&& other) noexcept;
    ~Watchpoint();

    [[nodiscard]] bool is_counting() const noexcept { return writes_ >= 0; }
    // The accesses since the last call.
    Counts take() noexcept;

  private:
    int all_ = -1;  // files of perf_event_open(), or -1
    int writes_ = -1;
    Counts taken_;
};

}  // namespace gpuviz::record
