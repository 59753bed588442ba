#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace gpuviz::cupti {

// Which record of an event a wait refers to: the last one whose call had returned. Thread-safe.
class EventRecords {
  public:
    // Where an event is recorded, which is where it was created.
    struct Owner {
        std::uint32_t context = 0;  // CUPTI's number; 0: unknown
        int device = 0;
    };
    struct Record {
        std::uint32_t event = 0;    // numbers the events, whose handles are reused
        std::uint64_t sync_id = 0;  // numbers the records; 0: not recorded since tracing began
        Owner owner;
        bool is_empty = false;  // created since then and not yet recorded: a wait is for nothing
    };

    // The program created the event, which no other process can record.
    void created(std::uint64_t handle);

    // The program recorded the event.
    [[nodiscard]] Record recorded(std::uint64_t handle, Owner owner);
    // The record that a wait for the event refers to.
    [[nodiscard]] Record last(std::uint64_t handle);
    // A capture recorded the event: waits for it in the capture refer to no record of the GPU.
    void captured(std::uint64_t handle);
    // From now on the event may be recorded without a call that says so, for example by a
    // graph made by hand: each wait for it refers to a record of its own that nobody has seen.
    void recorded_elsewhere(std::uint64_t handle);
    // From now on this may be so for any event that there is: none of them counts as empty.
    void may_be_recorded_elsewhere() noexcept;
    // The handle may denote another event from now on.
    void destroyed(std::uint64_t handle) noexcept;
    // Calls are not seen for a while: afterwards all handles may denote other events.
    void forget() noexcept;

  private:
    struct Event {
        Record last;
        bool is_recorded_elsewhere = false;
        std::uint64_t empty_in = 0;  // counts as empty while `trust_` is this
    };

    [[nodiscard]] Event& event_of(std::uint64_t handle);

    std::mutex mutex_;  // guards the rest
    std::unordered_map<std::uint64_t, Event> events_;
    std::uint64_t trust_ = 1;
    std::uint32_t events_seen_ = 0;
    std::uint64_t records_seen_ = 0;
};

}  // namespace gpuviz::cupti
