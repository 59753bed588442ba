#pragma once

#include <cstddef>
#include <cstdint>

// The interface between NCCL and its profiler plugins, as far as collectives need it, in versions 4
// (NCCL 2.26), 5 (2.28) and 6 (2.29). NCCL's documentation of profiler plugins describes it.
namespace gpuviz::nccl {

// ncclResult_t. A plugin that returns anything else makes NCCL fail.
using Result = int;
constexpr Result success = 0;
constexpr Result system_error = 2;

// Bits of the mask of wanted events, and the type of an event.
constexpr std::uint64_t collective_event = 1 << 1;
constexpr std::uint64_t peer_event = 1 << 2;
constexpr std::uint64_t collective_call_event = 1 << 9;  // these two from version 5
constexpr std::uint64_t peer_call_event = 1 << 10;

// A collective that NCCL enqueues.
struct Collective {
    std::uint64_t sequence;  // per function and communicator
    const char* function;
    const void* source;
    void* destination;
    std::size_t count;
    int root;
    const char* element;
    std::uint8_t channels;
    std::uint8_t warps;
    const char* algorithm;
    const char* protocol;
};

// One side of a transfer between two ranks.
struct Peer {
    const char* function;
    void* buffer;
    const char* element;
    std::size_t count;
    int rank;
    std::uint8_t channels;
};

// The call of the program that a collective is the parent of.
struct CollectiveCall {
    const char* function;
    std::size_t count;
    const char* element;
    int root;
    void* stream;
    bool is_captured;
};

struct PeerCall {
    const char* function;
    std::size_t count;
    const char* element;
    void* stream;
    bool is_captured;
};

template <typename Type>
struct Event {
    Type type;
    void* parent;  // what a plugin returned for the event that this one is part of
    int rank;
    union {
        Collective collective;
        Peer peer;
        CollectiveCall collective_call;
        PeerCall peer_call;
    };
};
using NarrowEvent = Event<std::uint8_t>;  // version 4
using WideEvent = Event<std::uint64_t>;   // from version 5
static_assert(offsetof(NarrowEvent, parent) == 8 && offsetof(NarrowEvent, collective) == 24);
static_assert(offsetof(WideEvent, parent) == 8 && offsetof(WideEvent, collective) == 24);
static_assert(offsetof(Collective, element) == 48 && offsetof(Collective, algorithm) == 64);
static_assert(offsetof(Peer, rank) == 32 && offsetof(PeerCall, stream) == 24);
static_assert(offsetof(CollectiveCall, stream) == 32);

using Log = void (*)(int level, unsigned long flags, const char* file, int line, const char* format,
                     ...);

template <typename Init, typename AnyEvent>
struct Plugin {
    const char* name;
    Init init;
    Result (*start)(void* context, void** handle, AnyEvent* event);
    Result (*stop)(void* handle);
    Result (*change_state)(void* handle, int state, void* arguments);
    Result (*finalize)(void* context);
};
using NarrowPlugin =
    Plugin<Result (*)(void** context, int* mask, const char* name, std::uint64_t communicator,
                      int hosts, int ranks, int rank, Log log),
           NarrowEvent>;
using WidePlugin = Plugin<Result (*)(void** context, std::uint64_t communicator, int* mask,
                                     const char* name, int hosts, int ranks, int rank, Log log),
                          WideEvent>;

}  // namespace gpuviz::nccl
