#pragma once

#include <cupti.h>

#include <cstdint>

#include "cupti/cupti_calls.hpp"
#include "cupti/cupti_captures.hpp"
#include "cupti/cupti_devices.hpp"
#include "cupti/cupti_records.hpp"
#include "record/pinned_copies.hpp"
#include "record/session.hpp"
#include "record/stream_calls.hpp"

namespace gpuviz::cupti {

// Reports to the session what calls do to pinned host memory: the copies from and to it, and the
// waits for them.
//
// Thread-safe. What it refers to must outlive it.
class CuptiHostMemory {
  public:
    CuptiHostMemory(record::Session& session, const CuptiRecords& records,
                    const CuptiCaptures& captures, CuptiDevices& devices)
        : session_(session), records_(records), captures_(captures), devices_(devices) {}
    CuptiHostMemory(const CuptiHostMemory&) = delete;
    CuptiHostMemory& operator=(const CuptiHostMemory&) = delete;

    // At the start of each call: what the thread did to pinned memory since its last one. The time
    // of the call is the latest that it can be.
    void note_accesses(std::int64_t now_ns) noexcept;
    // At the start of a call that waits, or may.
    void enter_wait(const CuptiCall& call, const CUpti_CallbackData& data) noexcept;
    // At the end of each call: copies, and events that the program can wait for them with.
    void note_call(const CuptiCall& call, const CUpti_CallbackData& data, std::int64_t began_ns,
                   std::uint32_t stack) noexcept;
    // At the end of a copy: reports an asynchronous one from or to memory of PinnedUses.
    void note_pinned_copy(const CuptiCall& call, const CUpti_CallbackData& data) noexcept;

  private:
    void note_copy(const CuptiCall& call, const CUpti_CallbackData& data,
                   const record::StreamCall& made,
                   const record::PinnedCopies::Moment& moment) noexcept;

    record::Session& session_;
    const CuptiRecords& records_;
    const CuptiCaptures& captures_;
    CuptiDevices& devices_;
};

}  // namespace gpuviz::cupti
