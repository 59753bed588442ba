#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "allocator/last_use.hpp"
#include "allocator/last_uses.hpp"
#include "allocator/segment_streams.hpp"
#include "device/device.hpp"
#include "hazards/order.hpp"
#include "record/fork_safe_mutex.hpp"
#include "record/stream_calls.hpp"

namespace gpuviz::allocator {

// Finds the work of other streams that a freed block must wait for.
//
// Follows which memory a program's launches, copies and memsets use on another stream than the
// memory's own, and which order its events and synchronizations establish. Memory of the legacy
// default stream and blocking streams are ordered implicitly. An event is recorded after a use only
// when the stream gets other work, or when the memory is freed and its stream has not waited.
//
// Nothing is recorded or queried on a stream that captures; captured work uses nothing. Its mutex
// may be requested with the allocator's held, not the other way around.
class UseTracker final : public record::StreamCalls {
  public:
    explicit UseTracker(device::Device& device) : device_(device) {}

    // Called with the allocator's lock.
    void add_segment(device::Address address, std::uint64_t size, device::StreamHandle stream);
    void remove_segment(device::Address address);
    // Forgets the order and the streams of earlier calls. Without `tracks_uses` only run_on()
    // works.
    void begin(bool tracks_uses, bool tracks_streams);
    void finish() noexcept override;

    [[nodiscard]] bool has_uses() const noexcept { return !uses_.is_empty(); }
    // What memory of `stream` waits for, newest per stream; afterwards it has no uses. An event
    // that cannot be recorded because its stream captures is recorded later.
    [[nodiscard]] std::vector<std::shared_ptr<LastUse>> take(device::Address address,
                                                             std::uint64_t size,
                                                             device::StreamHandle stream);
    void forget_uses();
    // Records the missing events of streams that do not capture.
    void record_missing();
    // Calls whose use of memory could not be noted.
    [[nodiscard]] std::uint64_t failures() const noexcept { return failures_.load(); }

    // Calls `enqueue` if the stream certainly exists, which tracking streams shows, and returns its
    // result; else false.
    template <typename Enqueue>
    bool run_on(device::StreamHandle stream, Enqueue enqueue) {
        const std::lock_guard lock(mutex_);
        return exists(stream) && run_as_own(enqueue);
    }

    void enter(const record::StreamCall& call) noexcept override;
    void exit(const record::StreamCall& call, bool succeeded,
              std::span<const std::uint64_t> addresses, std::uint32_t stack) noexcept override;

  private:
    // The calling thread's calls of the device under the lock are no calls of the program.
    struct OwnCalls {
        OwnCalls() noexcept { is_own_call = true; }
        OwnCalls(const OwnCalls&) = delete;
        OwnCalls& operator=(const OwnCalls&) = delete;
        ~OwnCalls() { is_own_call = false; }
    };
    struct Stream {
        hazards::Slot slot;
        hazards::StreamKind kind;
        bool is_described = false;  // else `kind` is a guess that orders the least
        bool is_ending = false;
        LastUses::Uses unrecorded{};
    };

    // The following require the lock.
    [[nodiscard]] bool exists(device::StreamHandle handle) const;
    template <typename Enqueue>
    static bool run_as_own(Enqueue enqueue) {
        const OwnCalls own;
        return enqueue();
    }
    [[nodiscard]] Stream& stream_at(device::StreamHandle handle);
    [[nodiscard]] Stream& stream_of_call(device::StreamHandle handle);
    [[nodiscard]] bool is_capturing(device::StreamHandle handle);
    [[nodiscard]] bool is_implied(device::StreamHandle own, device::StreamHandle user);
    void record(Stream& stream, device::StreamHandle handle);
    void record_if_legacy(device::StreamHandle handle);
    void use(device::StreamHandle handle, std::span<const std::uint64_t> addresses,
             std::uint32_t stack);
    void on_enter(const record::StreamCall& call);
    void on_exit(const record::StreamCall& call);

    static thread_local bool is_own_call;

    device::Device& device_;
    bool tracks_uses_ = true;
    bool tracks_streams_ = false;
    std::atomic<bool> is_running_{false};
    std::atomic<bool> follows_order_{false};  // since the first use
    std::atomic<std::uint64_t> failures_{0};

    record::ForkSafeMutex mutex_{record::ForkSafeMutex::Level::allocator};  // guards the rest
    SegmentStreams segments_;
    LastUses uses_;
    std::uint64_t epoch_ = 0;
    hazards::Order order_{false};
    std::unordered_map<device::StreamHandle, Stream> streams_;
    std::unordered_map<std::uint64_t, hazards::Clock> events_;
};

}  // namespace gpuviz::allocator
