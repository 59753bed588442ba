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

    // A stream that a call uses, with its own device, which need not be the current one.
    struct Used {
        int device = 0;
        std::uint32_t context = 0;  // CUPTI's number
        std::uint32_t id = 0;       // a row of `streams`; 0: none
    };
    // A call of this thread uses `stream`; `is_per_thread` if 0 means the thread's default stream.
    // `context_id` is CUPTI's. `device_of()`, the context's device, is called unless the thread's
    // last call used the same stream.
    template <typename DeviceOf>
    Used used(CUcontext context, std::uint32_t context_id, CUstream stream, bool is_per_thread,
              const DeviceOf& device_of) {
        const Use use{number_, version_.load(), context_id, {context, stream, is_per_thread}};
        thread_local constinit std::pair<Use, Used> last{};
        if (last.first == use) {
            return last.second;
        }
        const int device = device_of();
        if (const Used found = describe(use.key, device, 0); found.id != 0) {
            last = {use, found};
            return found;
        }
        return by_handle(use.key, {.device = device, .context = context_id});
    }
    void created(CUcontext context, int device, CUstream stream);
    void destroyed(int device, CUstream stream);
    // CUPTI detaches: afterwards it numbers streams anew, and handles may denote other streams.
    void forget();

  private:
    using Key = std::tuple<CUcontext, CUstream, bool>;
    using Known = std::tuple<CUcontext, CUstream, std::uint32_t>;
    struct Use {  // the calling thread's last, which is usually repeated
        std::uint64_t owner = 0;
        std::uint64_t version = 0;
        std::uint32_t context_id = 0;
        Key key{};

        bool operator==(const Use&) const = default;
    };

    // The stream, which is described now; without an id if it captures a graph: to ask about it
    // would end the capture.
    Used describe(const Key& key, int device, std::int64_t created);
    // The row of a stream, also of one that was described before CUPTI detached.
    [[nodiscard]] std::uint32_t row_of(const Known& known, const record::Stream& stream);
    // Describes a stream that has a handle, of which another device may be current.
    [[nodiscard]] Used describe_by_handle(const Known& key, int device, std::int64_t created);
    // A stream that may not be described yet: then it is taken for one of the current context.
    [[nodiscard]] Used by_handle(const Key& key, Used current);
    [[nodiscard]] std::uint64_t tracer_id_of(CUcontext context, CUstream stream,
                                             bool is_per_thread) const;
    [[nodiscard]] std::uint32_t number_of(CUcontext context) const;
    [[nodiscard]] bool is_capturing(CUstream stream) const noexcept;

    const CuptiLibrary& library_;
    record::ActivityLog& log_;
    CUresult (*get_id_)(CUstream, unsigned long long*) = nullptr;
    CUresult (*get_flags_)(CUstream, unsigned*) = nullptr;
    CUresult (*get_priority_)(CUstream, int*) = nullptr;
    CUresult (*get_context_)(CUstream, CUcontext*) = nullptr;
    CUresult (*is_capturing_)(CUstream, CUstreamCaptureStatus*) = nullptr;
    std::uint64_t number_;  // among all objects of this class
    std::atomic<std::uint64_t> version_{1};
    std::mutex mutex_;  // guards what follows
    // By current context and stream, with the thread, if it is its own.
    std::map<Known, Used> known_;
    std::map<CUstream, Used> with_handle_;  // those of known_ that have one
    // A row, and the driver's id of its stream, which no other one ever has; 0: unknown.
    using Row = std::pair<std::uint32_t, unsigned long long>;
    std::map<Known, Row> rows_;    // those of known_
    std::map<Known, Row> before_;  // those before CUPTI detached
};

}  // namespace gpuviz::cupti
