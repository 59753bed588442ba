#pragma once

#include <cupti.h>

#include <cstdint>

#include "cupti/cupti_calls.hpp"
#include "cupti/event_records.hpp"
#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Adds the rows of `synchronizations`: records of events, and waits of streams and of the host, as
// the calls that make them show. Thread-safe.
//
// CUPTI has activity records of them too, but while those are enabled, it intercepts every CUDA
// call of the process, even cudaGetDevice. Calls say more, such as whether a query was successful;
// they do not say when the GPU reached the record of an event.
class CuptiWaits {
  public:
    explicit CuptiWaits(record::ActivityLog& log) : log_(log) {}

    // A call that was made, on which stream, and when.
    struct Made {
        EventRecords::Owner owner;
        std::uint32_t stream = 0;  // a row of `streams`; 0: none
        std::uint32_t correlation = 0;
        std::int64_t began_ns = 0;
        std::int64_t ended_ns = 0;
    };

    // At the begin of each call about waits.
    void enter(const CuptiCall& call, const void* parameters);
    // At its end, if it was successful; of a query, if there was nothing to wait for. A wait for an
    // event that was created and not yet recorded waits for nothing, and has no row.
    void succeeded(const CuptiCall& call, const Made& made);
    // The program created an event, with flags of cuEventCreate.
    void created(std::uint64_t event, unsigned flags);
    // A kernel is launched, which can record events without a call for that.
    void launched(const CUlaunchConfig& config);
    // The GPU will record the event.
    void recorded(std::uint64_t event, const Made& made);

    [[nodiscard]] EventRecords& events() noexcept { return events_; }

  private:
    record::ActivityLog& log_;
    EventRecords events_;
};

}  // namespace gpuviz::cupti
