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

// The buffers that CUPTI fills with activity records; they are reused.
//
// CUPTI's buffer callbacks have no user data, so only one object of this class can be active in a
// process.
class CuptiBuffers {
  public:
    // About 1,500 kernels; small, so that an incomplete record delays few others.
    static constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

    CuptiBuffers(const CuptiLibrary& library, CuptiRecords& records, record::ActivityLog& log)
        : library_(library), records_(records), log_(log) {}
    CuptiBuffers(const CuptiBuffers&) = delete;
    CuptiBuffers& operator=(const CuptiBuffers&) = delete;
    ~CuptiBuffers();

    // Throws std::runtime_error.
    void activate();
    // Waits until no callback runs in it. Buffers still held by CUPTI are freed when it returns
    // them.
    void deactivate() noexcept;

    // The number of parsed records.
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
