#include "nccl/nccl.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "nccl/nccl_abi.hpp"
#include "record/activity_rows.hpp"
#include "record/callback_target.hpp"
#include "record/clock.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::nccl {

using record::CollectiveAlgorithm;
using record::CollectiveFunction;
using record::CollectiveProtocol;
using record::CollectiveRow;
using record::ElementType;

namespace {

using Target = record::CallbackTarget<record::Session>;

Target& target() noexcept {
    static Target& process = *new Target;
    return process;
}

// NCCL's words, and ours.
constexpr std::pair<std::string_view, CollectiveFunction> functions[] = {
    {"AllReduce", CollectiveFunction::all_reduce},
    {"AllGather", CollectiveFunction::all_gather},
    {"ReduceScatter", CollectiveFunction::reduce_scatter},
    {"Broadcast", CollectiveFunction::broadcast},
    {"Reduce", CollectiveFunction::reduce},
    {"Send", CollectiveFunction::send},
    {"Recv", CollectiveFunction::receive},
    {"AlltoAll", CollectiveFunction::all_to_all},
    {"Gather", CollectiveFunction::gather},
    {"Scatter", CollectiveFunction::scatter},
};
struct Element {
    ElementType type;
    std::int64_t bytes;
};
constexpr std::pair<std::string_view, Element> elements[] = {
    {"ncclInt8", {ElementType::int8, 1}},
    {"ncclUint8", {ElementType::uint8, 1}},
    {"ncclInt32", {ElementType::int32, 4}},
    {"ncclUint32", {ElementType::uint32, 4}},
    {"ncclInt64", {ElementType::int64, 8}},
    {"ncclUint64", {ElementType::uint64, 8}},
    {"ncclFloat16", {ElementType::float16, 2}},
    {"ncclBfloat16", {ElementType::bfloat16, 2}},
    {"ncclFloat32", {ElementType::float32, 4}},
    {"ncclFloat64", {ElementType::float64, 8}},
    {"ncclFloat8e4m3", {ElementType::float8_e4m3, 1}},
    {"ncclFloat8e5m2", {ElementType::float8_e5m2, 1}},
};
constexpr std::pair<std::string_view, CollectiveAlgorithm> algorithms[] = {
    {"TREE", CollectiveAlgorithm::tree},
    {"RING", CollectiveAlgorithm::ring},
    {"COLLNET_DIRECT", CollectiveAlgorithm::collnet_direct},
    {"COLLNET_CHAIN", CollectiveAlgorithm::collnet_chain},
    {"NVLS", CollectiveAlgorithm::nvls},
    {"NVLS_TREE", CollectiveAlgorithm::nvls_tree},
    {"PAT", CollectiveAlgorithm::pat},
};
constexpr std::pair<std::string_view, CollectiveProtocol> protocols[] = {
    {"LL", CollectiveProtocol::ll},
    {"LL128", CollectiveProtocol::ll128},
    {"SIMPLE", CollectiveProtocol::simple},
};

template <typename Value, std::size_t count>
Value meaning(const std::pair<std::string_view, Value> (&words)[count], const char* word) noexcept {
    for (const auto& [known, value] : words) {
        if (word != nullptr && known == word) {
            return value;
        }
    }
    return Value{};
}

// The calling thread's current device; -1 if unknown. NCCL is linked with CUDA, so a driver is
// loaded.
int current_device() noexcept {
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) {
        return -1;
    }
    const auto get_device = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuCtxGetDevice"));
    int device = -1;
    const bool is_known = get_device != nullptr && get_device(&device) == 0;
    dlclose(driver);
    return is_known ? device : -1;
}

struct Communicator {
    std::uint64_t id;
    int ranks;
    int rank;
    int device;  // that was current when it was created, which is its own
};

Result create(void** context, std::uint64_t id, int* mask, int ranks, int rank) noexcept {
    *context = new (std::nothrow) Communicator{id, ranks, rank, current_device()};
    if (*context == nullptr) {
        return system_error;
    }
    *mask = int(collective_event | peer_event | collective_call_event | peer_call_event);
    return success;
}

Result destroy(void* context) noexcept {
    delete static_cast<Communicator*>(context);
    return success;
}

// A call is represented by its stream, which the collective that is part of it needs. A null handle
// would mean that there is none.
char default_stream;

void* as_handle(void* stream) noexcept { return stream == nullptr ? &default_stream : stream; }

std::uint32_t stream_of(record::ActivityLog& log, const Communicator& communicator, void* parent,
                        std::int64_t time) noexcept {
    constexpr std::uint64_t legacy = 1;      // CU_STREAM_LEGACY
    constexpr std::uint64_t per_thread = 2;  // CU_STREAM_PER_THREAD, a stream of each thread
    auto handle = std::uint64_t(reinterpret_cast<std::uintptr_t>(parent));
    if (parent == nullptr || handle == per_thread || communicator.device < 0) {
        return 0;
    }
    if (parent == &default_stream || handle == legacy) {
        handle = 0;
    }
    try {
        return log.streams.by_handle(communicator.device, handle, time);
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

CollectiveRow row_of(const Collective& given) noexcept {
    const Element element = meaning(elements, given.element);
    CollectiveRow row{};
    row.function = meaning(functions, given.function);
    row.sequence = given.sequence;
    const bool has_root = row.function == CollectiveFunction::broadcast ||
                          row.function == CollectiveFunction::reduce ||
                          row.function == CollectiveFunction::gather ||
                          row.function == CollectiveFunction::scatter;
    row.peer = has_root ? given.root : -1;
    row.count = given.count;
    row.element = element.type;
    row.bytes = std::int64_t(given.count) * element.bytes;
    row.source = reinterpret_cast<std::uintptr_t>(given.source);
    row.destination = reinterpret_cast<std::uintptr_t>(given.destination);
    row.algorithm = meaning(algorithms, given.algorithm);
    row.protocol = meaning(protocols, given.protocol);
    row.channels = given.channels;
    return row;
}

CollectiveRow row_of(const Peer& given) noexcept {
    const Element element = meaning(elements, given.element);
    const auto address = std::uint64_t(reinterpret_cast<std::uintptr_t>(given.buffer));
    CollectiveRow row{};
    row.function = meaning(functions, given.function);
    row.peer = given.rank;
    row.count = given.count;
    row.element = element.type;
    row.bytes = std::int64_t(given.count) * element.bytes;
    (row.function == CollectiveFunction::receive ? row.destination : row.source) = address;
    row.channels = given.channels;
    return row;
}

void append(const Communicator& communicator, void* parent, CollectiveRow row) noexcept {
    const Target::Use session(target());
    if (!session) {
        return;
    }
    record::ActivityLog& log = session->log();
    row.time = log.since_start(record::now_ns());
    row.communicator = communicator.id;
    row.rank = communicator.rank;
    row.ranks = communicator.ranks;
    row.stream = stream_of(log, communicator, parent, row.time);
    row.thread = record::current_thread_id();
    row.range = session->ranges().current();
    log.collectives.append(row);
}

// NCCL also starts events that were not asked for, if those asked for are part of them.
template <typename AnyEvent>
Result start(void* context, void** handle, AnyEvent* event) noexcept {
    *handle = nullptr;
    if (context == nullptr) {
        return success;
    }
    const auto& communicator = *static_cast<const Communicator*>(context);
    switch (std::uint64_t(event->type)) {
        case collective_event:
            append(communicator, event->parent, row_of(event->collective));
            break;
        case peer_event:
            append(communicator, event->parent, row_of(event->peer));
            break;
        case collective_call_event:
            *handle = as_handle(event->collective_call.stream);
            break;
        case peer_call_event:
            *handle = as_handle(event->peer_call.stream);
            break;
        default:
            break;
    }
    return success;
}

Result stop(void*) noexcept { return success; }
Result change_state(void*, int, void*) noexcept { return success; }

Result create_narrow(void** context, int* mask, const char*, std::uint64_t communicator, int,
                     int ranks, int rank, Log) noexcept {
    return create(context, communicator, mask, ranks, rank);
}
Result create_wide(void** context, std::uint64_t communicator, int* mask, const char*, int,
                   int ranks, int rank, Log) noexcept {
    return create(context, communicator, mask, ranks, rank);
}

constexpr WidePlugin wide_plugin{"gpuviz", &create_wide,  &start<WideEvent>,
                                 &stop,    &change_state, &destroy};
constexpr NarrowPlugin narrow_plugin{"gpuviz", &create_narrow, &start<NarrowEvent>,
                                     &stop,    &change_state,  &destroy};

}  // namespace

void record_nccl(record::Session& session) noexcept { target().set(session); }
void ignore_nccl() noexcept { target().clear(); }
void abandon_nccl_after_fork() noexcept { target().abandon_after_fork(); }

}  // namespace gpuviz::nccl

// What NCCL looks up in the library, the newest version that it knows first.
extern "C" {
__attribute__((visibility("default"))) extern const gpuviz::nccl::WidePlugin ncclProfiler_v6 =
    gpuviz::nccl::wide_plugin;
__attribute__((visibility("default"))) extern const gpuviz::nccl::WidePlugin ncclProfiler_v5 =
    gpuviz::nccl::wide_plugin;
__attribute__((visibility("default"))) extern const gpuviz::nccl::NarrowPlugin ncclProfiler_v4 =
    gpuviz::nccl::narrow_plugin;
}
