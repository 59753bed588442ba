#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hazards/clock.hpp"

namespace gpuviz::hazards {

enum class StreamKind : std::uint8_t { legacy, blocking, non_blocking };

// What an action is ordered after. Valid until the next change of the order.
class Start {
  public:
    Start(const Clock& clock, Moment own) : clock_(clock), own_(own) {}
    // Of what is no action of a stream.
    explicit Start(const Clock& clock)
        : Start(clock, {.slot = std::numeric_limits<Slot>::max(), .index = 0}) {}

    [[nodiscard]] bool is_after(Moment moment) const noexcept {
        return moment.slot == own_.slot ? moment.index <= own_.index : clock_.has(moment);
    }

  private:
    const Clock& clock_;
    Moment own_;  // the last action of its stream that it is ordered after
};

// The order that CUDA guarantees between the actions of streams, and what host threads know.
//
// Streams belong to devices, which are numbered from 0. Nothing but events and the host orders the
// streams of one after those of another.
//
// Not thread-safe. Its memory grows with streams, threads and value addresses, not with actions.
class Order {
  public:
    explicit Order(bool strict_threads);

    static constexpr Slot legacy = 0;  // of device 0

    // Created when it is first asked for.
    [[nodiscard]] Slot legacy_of(Device device);
    [[nodiscard]] bool is_legacy(Slot stream) const {
        return streams_[stream].kind == StreamKind::legacy;
    }
    // `kind` is not legacy.
    [[nodiscard]] Slot create_stream(StreamKind kind, Device device = 0);
    void destroy_stream(Slot stream);
    // Keeps a stream apart from later ones after its end, until each hold is dropped.
    void hold(Slot stream) { ++streams_[stream].holds; }
    void drop(Slot stream) { --streams_[stream].holds; }

    // Appends an action to the stream. A programmatic one does not wait for the one before it.
    Moment act(Slot stream, std::uint32_t thread, bool programmatic = false);
    // What the last action of the stream is ordered after.
    [[nodiscard]] Start start_of_last(Slot stream) const;
    // What is complete when everything in the stream so far is.
    [[nodiscard]] const Clock& tail(Slot stream) const { return streams_[stream].tail; }
    // What the next action that a thread could append is ordered after.
    [[nodiscard]] Clock next_start(Slot stream, std::uint32_t thread);
    // What is complete when everything in all streams so far is, also in destroyed ones.
    [[nodiscard]] Clock everything() const;
    // Orders later actions of the stream after those of the clock.
    void follow(Slot stream, const Clock& clock);
    // Orders later actions of the stream after everything so far.
    void follow_all(Slot stream);

    [[nodiscard]] const Clock& known_to(std::uint32_t thread);
    void learn(std::uint32_t thread, const Clock& clock);
    void synchronize(std::uint32_t thread, Slot stream);
    void synchronize_device(std::uint32_t thread, Device device);
    void synchronize_all(std::uint32_t thread);
    // Counts an access of the host itself, which its thread knows.
    Moment access_by(std::uint32_t thread);
    // Whether nothing after now can be unordered with the action.
    [[nodiscard]] bool is_settled(Moment moment) const noexcept {
        return !strict_threads_ && hosts_[0].knows.has(moment);
    }
    [[nodiscard]] bool is_settled(const Clock& clock) const noexcept {
        return !strict_threads_ && hosts_[0].knows.has(clock);
    }
    [[nodiscard]] bool has_stream(Slot stream) const noexcept {
        return stream < streams_.size() && streams_[stream].alive;
    }

  private:
    struct Stream {
        StreamKind kind;
        Device device = 0;
        bool alive = true;
        bool unseen_by_legacy = false;
        std::uint32_t holds = 0;
        std::uint32_t thread_seen = 0;
        std::uint64_t host_seen = 0;    // Host::version of thread_seen
        std::uint64_t legacy_seen = 0;  // DefaultStream::version
        std::uint64_t last = 0;         // index of the last action
        std::uint64_t own_start = 0;    // last action of the stream before the start of the last
        Clock tail;
    };
    // What orders the blocking streams of a device.
    struct DefaultStream {
        std::optional<Slot> slot;
        std::vector<Slot> unseen;  // blocking streams with actions since its last one
        std::uint64_t version = 1;
    };
    struct Host {
        Clock knows;
        std::uint64_t version = 1;
        std::optional<Slot> slot;  // of its own accesses
    };

    [[nodiscard]] std::uint32_t host_of(std::uint32_t thread);
    [[nodiscard]] const DefaultStream& default_of(Slot slot) const {
        return defaults_[streams_[slot].device];
    }
    // What the legacy stream adds to the start of a blocking stream's next action; null if nothing.
    [[nodiscard]] const Clock* legacy_before(const Stream& stream) const;
    void join_implicit(Slot slot, std::uint32_t host);
    void changed(Slot slot);

    bool strict_threads_;
    std::vector<Stream> streams_;
    std::vector<Slot> destroyed_;
    std::vector<DefaultStream> defaults_;  // by device
    std::vector<Host> hosts_;
    std::unordered_map<std::uint32_t, std::uint32_t> host_of_thread_;
};

}  // namespace gpuviz::hazards
