#pragma once

#include <cupti.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cupti/cupti_library.hpp"
#include "cupti/cupti_records.hpp"

namespace gpuviz::cupti {

// The buffers that CUPTI fills with activity records, used again and again.
//
// CUPTI's buffer callbacks carry no pointer of ours, so one object of this class is active in the
// process at a time.
class CuptiBuffers {
  public:
    // Small, so that few records wait with one that is not complete: about 1,500 kernels.
    static constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

    CuptiBuffers(const CuptiLibrary& library, CuptiRecords& records, record::ActivityLog& log)
        : library_(library), records_(records), log_(log) {}
    CuptiBuffers(const CuptiBuffers&) = delete;
    CuptiBuffers& operator=(const CuptiBuffers&) = delete;
    ~CuptiBuffers();

    // Throws std::runtime_error.
    void activate();
    // Returns when no callback runs in it any more. Buffers that CUPTI still has are its own then.
    void deactivate() noexcept;

    // Records that were parsed.
    [[nodiscard]] std::uint64_t records() const noexcept { return parsed_.load(); }

  private:
    static void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size,
                                   std::size_t* max_records);
    static void CUPTIAPI completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                   std::size_t size, std::size_t valid_size);
    [[nodiscard]] std::uint8_t* take();
    void parse(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
               std::size_t valid_size);
    void give_back(std::uint8_t* buffer) noexcept;

    const CuptiLibrary& library_;
    CuptiRecords& records_;
    record::ActivityLog& log_;
    std::atomic<std::uint64_t> parsed_{0};
    std::mutex mutex_;  // guards free_
    std::vector<std::uint8_t*> free_;
};

}  // namespace gpuviz::cupti
