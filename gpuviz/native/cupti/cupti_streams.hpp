#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <tuple>

#include "cupti/cupti_library.hpp"
#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Adds CUPTI's id, the kind and the priority of each used stream to the stream table. Thread-safe.
class CuptiStreams {
  public:
    CuptiStreams(const CuptiLibrary& library, record::ActivityLog& log);

    // A call of this thread uses `stream`; `is_per_thread` if 0 means the thread's default stream.
    // `context_id` is CUPTI's. `device_of()`, the context's device, is called unless the thread's
    // last call used the same stream.
    template <typename DeviceOf>
    void used(CUcontext context, std::uint32_t context_id, CUstream stream, bool is_per_thread,
              const DeviceOf& device_of) {
        const Memo now{number_, version_.load(), context_id, {context, stream, is_per_thread}};
        thread_local Memo last;
        if (last != now && describe(now.key, device_of(), 0)) {
            last = now;
        }
    }
    void created(CUcontext context, int device, CUstream stream);
    void destroyed(CUcontext context, int device, CUstream stream);

  private:
    using Key = std::tuple<CUcontext, CUstream, bool>;
    struct Memo {  // the calling thread's last stream, which is usually used again
        std::uint64_t owner = 0;
        std::uint64_t version = 0;
        std::uint32_t context_id = 0;
        Key key{};

        bool operator==(const Memo&) const = default;
    };

    // Whether the stream is described now. To ask about one that captures a graph would end the
    // capture.
    bool describe(const Key& key, int device, std::int64_t created);
    [[nodiscard]] bool is_capturing(CUstream stream) const noexcept;

    const CuptiLibrary& library_;
    record::ActivityLog& log_;
    CUresult (*get_flags_)(CUstream, unsigned*) = nullptr;
    CUresult (*get_priority_)(CUstream, int*) = nullptr;
    CUresult (*is_capturing_)(CUstream, CUstreamCaptureStatus*) = nullptr;
    std::uint64_t number_;  // among all objects of this class
    std::atomic<std::uint64_t> version_{1};
    std::mutex mutex_;                                                // guards known_
    std::set<std::tuple<CUcontext, CUstream, std::uint32_t>> known_;  // with the thread, if its own
};

}  // namespace gpuviz::cupti
