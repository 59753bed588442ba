#pragma once

#include <cstdint>
#include <tuple>

#include "record/codes.hpp"
#include "record/columns.hpp"
#include "record/memory_event.hpp"

// Rows of the tables of gpuviz/data/tables.py on activity of the GPU and the host. Times are
// nanoseconds since the session's start.
namespace gpuviz::record {

struct ActivityRow {
    std::int64_t time;
    std::int64_t end;
    ActivityKind kind;
    std::uint32_t name;
    std::int16_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t correlation;
    std::int64_t bytes;
    CopyKind copy_kind;
    MemoryKind source;
    MemoryKind destination;
    std::uint32_t graph;
    std::uint64_t graph_node;
    std::uint32_t launch;
    // Those of a copy between two devices, else -1.
    std::int16_t source_device = -1;
    std::int16_t destination_device = -1;

    static constexpr auto fields() {
        return std::tuple{Field{"time", &ActivityRow::time},
                          Field{"end", &ActivityRow::end},
                          Field{"kind", &ActivityRow::kind},
                          Field{"name", &ActivityRow::name},
                          Field{"device", &ActivityRow::device},
                          Field{"context", &ActivityRow::context},
                          Field{"stream", &ActivityRow::stream},
                          Field{"correlation", &ActivityRow::correlation},
                          Field{"bytes", &ActivityRow::bytes},
                          Field{"copy_kind", &ActivityRow::copy_kind},
                          Field{"source", &ActivityRow::source},
                          Field{"destination", &ActivityRow::destination},
                          Field{"graph", &ActivityRow::graph},
                          Field{"graph_node", &ActivityRow::graph_node},
                          Field{"launch", &ActivityRow::launch},
                          Field{"source_device", &ActivityRow::source_device},
                          Field{"destination_device", &ActivityRow::destination_device}};
    }
};

struct LaunchConfigurationRow {
    std::uint32_t id;
    std::uint32_t grid_x;
    std::uint32_t grid_y;
    std::uint32_t grid_z;
    std::uint32_t block_x;
    std::uint32_t block_y;
    std::uint32_t block_z;
    std::uint32_t registers;
    std::uint32_t static_shared_memory;
    std::uint32_t dynamic_shared_memory;

    static constexpr auto fields() {
        using Self = LaunchConfigurationRow;
        return std::tuple{Field{"id", &Self::id},
                          Field{"grid_x", &Self::grid_x},
                          Field{"grid_y", &Self::grid_y},
                          Field{"grid_z", &Self::grid_z},
                          Field{"block_x", &Self::block_x},
                          Field{"block_y", &Self::block_y},
                          Field{"block_z", &Self::block_z},
                          Field{"registers", &Self::registers},
                          Field{"static_shared_memory", &Self::static_shared_memory},
                          Field{"dynamic_shared_memory", &Self::dynamic_shared_memory}};
    }
};

struct ApiCallRow {
    std::int64_t time;
    std::int64_t end;
    std::uint32_t name;
    std::uint32_t thread;
    std::uint32_t correlation;
    std::uint32_t stack;
    std::uint32_t range;
    std::uint32_t stream = 0;    // of a copy within or between devices
    std::uint32_t own_cost = 0;  // ns that recording took after the call

    static constexpr auto fields() {
        return std::tuple{Field{"time", &ApiCallRow::time},
                          Field{"end", &ApiCallRow::end},
                          Field{"name", &ApiCallRow::name},
                          Field{"thread", &ApiCallRow::thread},
                          Field{"correlation", &ApiCallRow::correlation},
                          Field{"stack", &ApiCallRow::stack},
                          Field{"range", &ApiCallRow::range},
                          Field{"stream", &ApiCallRow::stream},
                          Field{"own_cost", &ApiCallRow::own_cost}};
    }
};

struct SynchronizationRow {
    std::int64_t time;
    std::int64_t end;
    SynchronizationKind kind;
    std::int16_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t event;
    std::uint64_t event_sync_id;
    std::uint32_t correlation;

    static constexpr auto fields() {
        using Self = SynchronizationRow;
        return std::tuple{Field{"time", &Self::time},
                          Field{"end", &Self::end},
                          Field{"kind", &Self::kind},
                          Field{"device", &Self::device},
                          Field{"context", &Self::context},
                          Field{"stream", &Self::stream},
                          Field{"event", &Self::event},
                          Field{"event_sync_id", &Self::event_sync_id},
                          Field{"correlation", &Self::correlation}};
    }
};

struct LaunchBlockRow {
    std::uint32_t correlation;
    std::uint64_t block;
    std::uint64_t address;
    AccessMode mode;
    std::uint64_t bytes;    // 0: unknown
    std::uint64_t content;  // 0: unknown
    std::uint32_t element;  // 0: unknown
    std::uint32_t stride;   // 0: unknown, or there are elements without gaps between them

    static constexpr auto fields() {
        using Self = LaunchBlockRow;
        return std::tuple{Field{"correlation", &Self::correlation},
                          Field{"block", &Self::block},
                          Field{"address", &Self::address},
                          Field{"mode", &Self::mode},
                          Field{"bytes", &Self::bytes},
                          Field{"content", &Self::content},
                          Field{"element", &Self::element},
                          Field{"stride", &Self::stride}};
    }
};

struct GraphCallRow {
    std::uint32_t correlation;
    GraphCallKind kind;
    std::uint32_t name;
    std::uint32_t stream;
    std::uint32_t capture;
    std::uint32_t graph;  // of launches
    std::uint64_t event;  // of records and waits

    static constexpr auto fields() {
        using Self = GraphCallRow;
        return std::tuple{Field{"correlation", &Self::correlation},
                          Field{"kind", &Self::kind},
                          Field{"name", &Self::name},
                          Field{"stream", &Self::stream},
                          Field{"capture", &Self::capture},
                          Field{"graph", &Self::graph},
                          Field{"event", &Self::event}};
    }
};

struct MemoryOperationRow {
    std::int64_t time;
    MemoryOperation operation;
    MemoryKind memory;
    std::uint64_t address;
    std::int64_t bytes;
    std::int16_t device;
    std::uint32_t stream;
    std::uint32_t correlation;
    std::uint32_t source;

    static constexpr auto fields() {
        using Self = MemoryOperationRow;
        return std::tuple{Field{"time", &Self::time},     Field{"operation", &Self::operation},
                          Field{"memory", &Self::memory}, Field{"address", &Self::address},
                          Field{"bytes", &Self::bytes},   Field{"device", &Self::device},
                          Field{"stream", &Self::stream}, Field{"correlation", &Self::correlation},
                          Field{"source", &Self::source}};
    }
};

// An event of the allocator of pinned memory; see MemoryEvent.
struct HostMemoryEventRow {
    std::int64_t time;
    Action action;
    std::uint64_t address;
    std::int64_t size;
    std::int64_t requested_size;
    std::uint32_t stack;
    std::uint32_t thread;
    std::uint32_t range;

    static constexpr auto fields() {
        using Self = HostMemoryEventRow;
        return std::tuple{Field{"time", &Self::time},
                          Field{"action", &Self::action},
                          Field{"address", &Self::address},
                          Field{"size", &Self::size},
                          Field{"requested_size", &Self::requested_size},
                          Field{"stack", &Self::stack},
                          Field{"thread", &Self::thread},
                          Field{"range", &Self::range}};
    }
};

// An access of the host itself to memory that a copy may still have been using.
struct HostAccessRow {
    std::int64_t time;
    AccessMode mode;
    std::uint32_t correlation;  // of the copy
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint32_t stack;
    std::uint32_t thread;
    std::uint8_t exact;  // 0: the access was before the call of `stack`, else there

    static constexpr auto fields() {
        using Self = HostAccessRow;
        return std::tuple{Field{"time", &Self::time},
                          Field{"mode", &Self::mode},
                          Field{"correlation", &Self::correlation},
                          Field{"address", &Self::address},
                          Field{"bytes", &Self::bytes},
                          Field{"stack", &Self::stack},
                          Field{"thread", &Self::thread},
                          Field{"exact", &Self::exact}};
    }
};

struct OverheadRow {
    std::int64_t time;
    std::int64_t end;
    OverheadKind kind;
    std::uint32_t thread;
    std::uint32_t correlation;

    static constexpr auto fields() {
        return std::tuple{Field{"time", &OverheadRow::time}, Field{"end", &OverheadRow::end},
                          Field{"kind", &OverheadRow::kind}, Field{"thread", &OverheadRow::thread},
                          Field{"correlation", &OverheadRow::correlation}};
    }
};

// What a thread did from `time` to `end` between two CUDA calls; see HostSampler.
struct HostSampleRow {
    std::int64_t time;
    std::int64_t end;
    std::uint32_t thread;
    std::uint32_t stack;
    HostState state;
    std::uint32_t holder;  // the thread that had the GIL meanwhile; 0: unknown
    std::uint32_t samples;

    static constexpr auto fields() {
        using Self = HostSampleRow;
        return std::tuple{Field{"time", &Self::time},      Field{"end", &Self::end},
                          Field{"thread", &Self::thread},  Field{"stack", &Self::stack},
                          Field{"state", &Self::state},    Field{"holder", &Self::holder},
                          Field{"samples", &Self::samples}};
    }
};

struct CollectiveRow {
    std::int64_t time;
    CollectiveFunction function;
    std::uint64_t communicator;
    std::int32_t rank;
    std::int32_t ranks;
    std::uint64_t sequence;  // 0 for send and receive
    std::int32_t peer;       // -1: none
    std::uint64_t count;
    ElementType element;
    std::int64_t bytes;    // of `count` elements; 0: unknown
    std::uint64_t source;  // addresses; 0: none
    std::uint64_t destination;
    std::uint32_t stream;
    CollectiveAlgorithm algorithm;
    CollectiveProtocol protocol;
    std::int32_t channels;
    std::uint32_t thread;
    std::uint32_t range;

    static constexpr auto fields() {
        using Self = CollectiveRow;
        return std::tuple{Field{"time", &Self::time},
                          Field{"function", &Self::function},
                          Field{"communicator", &Self::communicator},
                          Field{"rank", &Self::rank},
                          Field{"ranks", &Self::ranks},
                          Field{"sequence", &Self::sequence},
                          Field{"peer", &Self::peer},
                          Field{"count", &Self::count},
                          Field{"element", &Self::element},
                          Field{"bytes", &Self::bytes},
                          Field{"source", &Self::source},
                          Field{"destination", &Self::destination},
                          Field{"stream", &Self::stream},
                          Field{"algorithm", &Self::algorithm},
                          Field{"protocol", &Self::protocol},
                          Field{"channels", &Self::channels},
                          Field{"thread", &Self::thread},
                          Field{"range", &Self::range}};
    }
};

// A tensor whose owner says what it is.
struct TensorRow {
    std::int64_t time;
    std::int16_t device;
    std::uint64_t address;
    Category category;
    std::uint32_t name;  // 0: unknown

    static constexpr auto fields() {
        return std::tuple{Field{"time", &TensorRow::time}, Field{"device", &TensorRow::device},
                          Field{"address", &TensorRow::address},
                          Field{"category", &TensorRow::category}, Field{"name", &TensorRow::name}};
    }
};

struct RangeRow {
    std::uint32_t id;
    std::int64_t time;
    std::int64_t end;  // -1: open
    std::uint32_t name;
    RangeKind kind;
    std::uint32_t thread;
    std::uint32_t parent;

    static constexpr auto fields() {
        return std::tuple{Field{"id", &RangeRow::id},        Field{"time", &RangeRow::time},
                          Field{"end", &RangeRow::end},      Field{"name", &RangeRow::name},
                          Field{"kind", &RangeRow::kind},    Field{"thread", &RangeRow::thread},
                          Field{"parent", &RangeRow::parent}};
    }
};

}  // namespace gpuviz::record
