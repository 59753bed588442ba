#pragma once

#include <cupti.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cupti/cupti_buffers.hpp"
#include "cupti/cupti_calls.hpp"
#include "cupti/cupti_captures.hpp"
#include "cupti/cupti_devices.hpp"
#include "cupti/cupti_host_memory.hpp"
#include "cupti/cupti_launch.hpp"
#include "cupti/cupti_library.hpp"
#include "cupti/cupti_records.hpp"
#include "cupti/cupti_streams.hpp"
#include "cupti/cupti_waits.hpp"
#include "record/session.hpp"

namespace gpuviz::cupti {

struct CuptiOptions {
    bool launch_sites = true;      // rows of api_calls for launches, copies and synchronizations
    bool stacks = true;            // with call stacks
    bool api_calls = false;        // rows for all driver calls
    bool follows_streams = false;  // for the session's StreamCalls
    bool graph_nodes = true;       // kernels of graphs one by one, not a graph launch as a whole
};

// Records the GPU activities of this process into a session, whichever library causes them.
//
// CUPTI serves one client per process: start() throws if another tracer or tool is active.
// Callbacks run on the threads that call CUDA, usually without the GIL, and on a thread of CUPTI.
// The session must outlive stop().
class CuptiTracer {
  public:
    CuptiTracer(std::shared_ptr<const CuptiLibrary> library, record::Session& session,
                const CuptiOptions& options);
    CuptiTracer(const CuptiTracer&) = delete;
    CuptiTracer& operator=(const CuptiTracer&) = delete;
    ~CuptiTracer();

    // Throws std::runtime_error with the reason, and the name of another tool if CUPTI reports it.
    void start();
    // Waits until the GPU is idle and all its activities are in the log. Does nothing unless
    // started.
    void stop() noexcept;
    // Detaches from the process, which then runs as if nobody recorded it, until start() is called
    // again. Waits a second at most for the work that was launched before: the work of calls that
    // have no activity may have been running. Returns when the last call can have been recorded.
    std::int64_t pause() noexcept;
    // Adds completed activities to the log; a thread of the tracer also does this every 50 ms.
    void flush() noexcept;

    // To be called in the child after fork(), where CUDA cannot be used: discards everything.
    void abandon_after_fork() noexcept;

    // The number of launches seen by callbacks, and of records delivered by CUPTI. Launches without
    // any records mean that another tool took over CUPTI's buffers.
    [[nodiscard]] std::uint64_t launches() const noexcept { return launches_.load(); }
    [[nodiscard]] std::uint64_t records() const noexcept { return buffers_.records(); }
    // The calls with a row in `api_calls`, and how long gpuviz worked in them, in ns.
    [[nodiscard]] std::uint64_t calls() const noexcept { return recorded_calls_.load(); }
    // The calls that were followed and have no row.
    [[nodiscard]] std::uint64_t other_calls() const noexcept { return other_calls_.load(); }
    [[nodiscard]] std::int64_t own_ns() const noexcept { return own_ns_.load(); }
    // How long CUPTI attached and detached, in ns.
    [[nodiscard]] std::int64_t attach_ns() const noexcept { return attach_ns_.load(); }
    [[nodiscard]] bool reads_arguments() const noexcept { return arguments_.is_supported(); }
    [[nodiscard]] std::uint64_t unreadable_launches() const noexcept {
        return arguments_.unreadable();
    }

  private:
    static void CUPTIAPI callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                  const void* data);
    void on_call(CUpti_CallbackId id, const CUpti_CallbackData& data) noexcept;
    void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data) noexcept;
    void count(const CuptiCall& call, const record::ApiCallRow& row) noexcept;
    // What a call that gets a row in `api_calls` means for memory, captures and graphs.
    void note_recorded_call(const CuptiCall& call, const CUpti_CallbackData& data,
                            std::uint32_t stream, std::int64_t began_ns, std::uint32_t stack,
                            std::vector<record::BlockTouches::Touch>& touches) noexcept;
    void on_enter(const CuptiCall& call, const CUpti_CallbackData& data) noexcept;
    void note_wait(const CuptiCall& call, const CUpti_CallbackData& data, std::int64_t began_ns,
                   std::int64_t ended_ns) noexcept;
    [[nodiscard]] bool is_captured_record(const CuptiCall& call, const CUpti_CallbackData& data);
    // The stream that the call names, or the default stream that its copy is issued on; else only
    // the current device.
    CuptiStreams::Used stream_used(const CuptiCall& call, const CUpti_CallbackData& data) noexcept;
    // Whether all that the call accesses is known, as far as parameters show it.
    bool touch_blocks(const CuptiCall& call, const CUpti_CallbackData& data, std::int64_t time_ns,
                      std::vector<record::BlockTouches::Touch>& found);
    // Reports a call to whoever follows those about the streams of its device.
    void follow_enter(const CuptiCall& call, const CUpti_CallbackData& data) noexcept;
    void follow_exit(const CuptiCall& call, const CUpti_CallbackData& data,
                     const std::vector<record::BlockTouches::Touch>& touches,
                     std::uint32_t stack) noexcept;
    [[nodiscard]] record::StreamCalls* follower_of(const CUpti_CallbackData& data);
    void on_graph_call(const CuptiCall& call, const CUpti_CallbackData& data);
    void on_graph_records(const CuptiCall& call, const CUpti_CallbackData& data);
    void on_captured_call(const CuptiCall& call, const CUpti_CallbackData& data,
                          std::uint32_t stream, bool is_known_node);
    void on_graph_launch(const CUpti_CallbackData& data, CUstream stream, std::uint32_t stream_id);
    // Whether calls that get no row are needed as well.
    [[nodiscard]] bool is_followed(const CuptiCall& call) const noexcept {
        return options_.follows_streams && (call.is_work() || call.is_about_order());
    }
    // Whether the call gets a row in `api_calls`.
    [[nodiscard]] bool is_recorded(const CuptiCall& call) const noexcept {
        return options_.api_calls || (options_.launch_sites && call.is_traced);
    }
    [[nodiscard]] std::uint32_t name_of(CUpti_CallbackId id) noexcept;

    void subscribe();
    void end_flusher() noexcept;
    void forget_host_threads() noexcept;
    // Ends CUPTI; everything that it has is in the log afterwards.
    void detach() noexcept;
    // Waits for the work that was launched, but not long.
    void await_work() noexcept;
    // Handles may denote other objects when calls are seen again.
    void forget() noexcept;
    [[nodiscard]] std::string other_subscriber() const;
    void enable_callbacks(bool enable) noexcept;
    void enable_activities();
    void disable_activities() noexcept;
    void synchronize_contexts() noexcept;
    void flush_until_stopped();

    std::shared_ptr<const CuptiLibrary> library_;
    record::Session& session_;
    CuptiOptions options_;
    CuptiRecords records_;
    CuptiBuffers buffers_;
    CuptiStreams streams_;
    CuptiWaits waits_;
    CuptiLaunchArguments arguments_;
    CuptiCaptures captures_;
    CuptiDevices devices_;
    CuptiHostMemory host_memory_;
    std::vector<CuptiCall> calls_;
    std::vector<std::atomic<std::uint32_t>> call_names_;  // ids of strings; 0: unknown so far
    std::vector<CUpti_ActivityKind> kinds_;               // enabled kinds
    CUpti_SubscriberHandle subscriber_ = nullptr;
    std::atomic<std::int64_t> attach_ns_{0};
    std::atomic<int> inside_{0};  // running callbacks
    std::atomic<bool> builds_graphs_{false};
    // Of the rows of `api_calls`; see count().
    std::atomic<std::uint64_t> launches_{0};
    std::atomic<std::uint64_t> recorded_calls_{0};
    std::atomic<std::int64_t> own_ns_{0};
    std::atomic<std::uint64_t> other_calls_{0};
    std::atomic<std::uint32_t> last_call_{0};  // the highest correlation id
    std::atomic<std::uint32_t> last_work_{0};  // of calls that enqueue work

    std::mutex mutex_;  // guards stopping_
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread flusher_;
};

}  // namespace gpuviz::cupti
