#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "cupti/cupti_library.hpp"
#include "cupti/graph_launches.hpp"
#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Converts CUPTI's activity records to rows. Thread-safe, without the GIL.
//
// Records are read as the oldest structures with the required members; CUPTI only appends members.
// Records from before or after the recording are skipped.
class CuptiRecords {
  public:
    // `graph_nodes`: record the kernels of a graph one by one, not each launch as a whole.
    CuptiRecords(const CuptiLibrary& library, record::ActivityLog& log, bool graph_nodes)
        : library_(library), log_(log), graph_nodes_(graph_nodes), graphs_(log) {}

    // Parses the records in a buffer that CUPTI completed; returns their number.
    std::uint64_t parse(std::uint8_t* buffer, std::size_t valid_size);
    void parse(const CUpti_Activity& record);
    // To be called after the last record.
    void finish();

    // CUPTI numbers calls anew with each attachment; they continue after this id.
    void number_calls_after(std::uint32_t correlation) noexcept { before_ = correlation; }
    [[nodiscard]] std::uint32_t correlation_of(std::uint32_t id) const noexcept {
        return id == 0 ? 0 : id + before_.load(std::memory_order_relaxed);
    }
    // The highest id of a call whose work has ended.
    [[nodiscard]] std::uint32_t last_ended() const noexcept { return last_ended_.load(); }

  private:
    void kernel(const CUpti_ActivityKernel9& record);
    template <typename Record>
    void memcpy(const Record& record);
    void memset(const CUpti_ActivityMemset4& record);
    void memory(const CUpti_ActivityMemory4& record);
    void overhead(const CUpti_ActivityOverhead3& record);
    void jit(const CUpti_ActivityJit2& record);

    void append(const record::ActivityRow& row);
    template <typename Record>
    [[nodiscard]] bool is_whole(const Record& record);
    template <typename Record>
    [[nodiscard]] record::ActivityRow row_of(const Record& record, record::ActivityKind kind);
    [[nodiscard]] std::uint32_t stream(int device, std::uint32_t stream_id);

    const CuptiLibrary& library_;
    record::ActivityLog& log_;
    bool graph_nodes_;
    std::atomic<std::uint32_t> before_{0};
    std::atomic<std::uint32_t> last_ended_{0};
    std::mutex graphs_mutex_;  // guards graphs_
    GraphLaunches graphs_;
};

}  // namespace gpuviz::cupti
