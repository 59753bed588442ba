#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "cupti/cupti_library.hpp"
#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Our handle of a stream of the calling thread.
[[nodiscard]] std::uint64_t handle_of(CUstream stream);

// Adds CUPTI's id, the kind and the priority of each used stream to the stream table. Thread-safe.
class CuptiStreams {
  public:
    CuptiStreams(const CuptiLibrary& library, record::ActivityLog& log);

    // A stream that a call uses, as the table `streams` knows it.
    struct Used {
        int device = 0;
        std::uint32_t id = 0;
    };
    // A call of this thread uses `stream`; `is_per_thread` if 0 means the thread's default stream.
    // `context_id` is CUPTI's. `device_of()`, the context's device, is called unless the thread's
    // last call used the same stream.
    template <typename DeviceOf>
    Used used(CUcontext context, std::uint32_t context_id, CUstream stream, bool is_per_thread,
              const DeviceOf& device_of) {
        const Use use{number_, version_.load(), context_id, {context, stream, is_per_thread}};
        thread_local std::pair<Use, Used> last;
        if (last.first == use) {
            return last.second;
        }
        const int device = device_of();
        if (const std::uint32_t id = describe(use.key, device, 0)) {
            last = {use, {device, id}};
            return last.second;
        }
        return {device, by_handle(use.key, device)};
    }
    void created(CUcontext context, int device, CUstream stream);
    void destroyed(CUcontext context, int device, CUstream stream);

  private:
    using Key = std::tuple<CUcontext, CUstream, bool>;
    struct Use {  // the calling thread's last, which is usually repeated
        std::uint64_t owner = 0;
        std::uint64_t version = 0;
        std::uint32_t context_id = 0;
        Key key{};

        bool operator==(const Use&) const = default;
    };

    // The id of the stream, which is described now; 0 if it captures a graph: to ask about it would
    // end the capture.
    std::uint32_t describe(const Key& key, int device, std::int64_t created);
    // The id of a stream that may not be described yet.
    [[nodiscard]] std::uint32_t by_handle(const Key& key, int device);
    [[nodiscard]] bool is_capturing(CUstream stream) const noexcept;

    const CuptiLibrary& library_;
    record::ActivityLog& log_;
    CUresult (*get_flags_)(CUstream, unsigned*) = nullptr;
    CUresult (*get_priority_)(CUstream, int*) = nullptr;
    CUresult (*is_capturing_)(CUstream, CUstreamCaptureStatus*) = nullptr;
    std::uint64_t number_;  // among all objects of this class
    std::atomic<std::uint64_t> version_{1};
    std::mutex mutex_;  // guards known_
    // Ids by context and stream, with the thread, if it is its own.
    std::map<std::tuple<CUcontext, CUstream, std::uint32_t>, std::uint32_t> known_;
};

}  // namespace gpuviz::cupti
