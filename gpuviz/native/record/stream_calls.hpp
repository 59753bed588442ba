#pragma once

#include <cstdint>
#include <span>

namespace gpuviz::record {

// A call of a program that enqueues work on a stream, or that orders streams or the host.
struct StreamCall {
    enum class Kind : std::uint8_t {
        work,  // launch, copy, memset and everything else that the stream executes
        event_record,
        stream_wait_event,
        event_synchronize,
        event_destroy,
        stream_synchronize,
        stream_destroy,
        device_synchronize,
    };

    Kind kind;
    std::uint64_t stream = 0;  // of the calls that have one
    std::uint64_t event = 0;   // likewise
};

// Follows the calls of a program about the streams of one device. Called by the threads that make
// them, at both ends of each call, without any lock of a tracer.
class StreamCalls {
  public:
    virtual ~StreamCalls() = default;

    virtual void enter(const StreamCall& call) noexcept = 0;
    // `addresses` of work are those that may lie in allocated memory; `stack` is the caller's.
    virtual void exit(const StreamCall& call, bool succeeded,
                      std::span<const std::uint64_t> addresses, std::uint32_t stack) noexcept = 0;
    // No more calls are followed.
    virtual void finish() noexcept = 0;
};

}  // namespace gpuviz::record
