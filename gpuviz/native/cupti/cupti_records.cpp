#include "cupti/cupti_records.hpp"

#include <algorithm>
#include <string_view>

#include "cupti/cupti_parameters.hpp"

namespace gpuviz::cupti {

using record::ActivityKind;
using record::ActivityRow;
using record::CopyKind;
using record::MemoryKind;
using record::OverheadKind;

namespace {

// CUPTI's "no stream".
constexpr std::uint32_t kNone = 0xffffffff;

MemoryKind memory_kind(std::uint32_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
            return MemoryKind::pageable;
        case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
            return MemoryKind::pinned;
        case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
        case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
            return MemoryKind::device;
        case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
            return MemoryKind::array;
        case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
        case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
            return MemoryKind::managed;
        default:
            return MemoryKind::none;
    }
}

CopyKind copy_kind(std::uint8_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
            return CopyKind::host_to_device;
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
            return CopyKind::device_to_host;
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
            return CopyKind::device_to_device;
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
            return CopyKind::host_to_host;
        case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
            return CopyKind::peer_to_peer;
        default:
            return CopyKind::none;
    }
}

OverheadKind overhead_kind(std::uint32_t kind) {
    if (kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER) {
        return OverheadKind::driver_compiler;
    }
    // 1 << 16, 2 << 16, ... in the order of our enumeration.
    const std::uint32_t number = kind >> 16;
    const auto first = std::uint32_t(OverheadKind::buffer_flush);
    const auto last = std::uint32_t(OverheadKind::uvm_activity_init);
    return number == 0 || number + first - 1 > last ? OverheadKind::unknown
                                                    : OverheadKind(number + first - 1);
}

// Copies and memsets have no names in CUPTI.
std::string_view copy_name(CopyKind kind) {
    switch (kind) {
        case CopyKind::host_to_device:
            return "memcpy HtoD";
        case CopyKind::device_to_host:
            return "memcpy DtoH";
        case CopyKind::device_to_device:
            return "memcpy DtoD";
        case CopyKind::host_to_host:
            return "memcpy HtoH";
        case CopyKind::peer_to_peer:
            return "memcpy PtoP";
        default:
            return "memcpy";
    }
}

// Raises the highest id that was seen.
inline void raise(std::atomic<std::uint32_t>& highest, std::uint32_t id) noexcept {
    std::uint32_t seen = highest.load(std::memory_order_relaxed);
    while (seen < id && !highest.compare_exchange_weak(seen, id, std::memory_order_relaxed)) {
    }
}

template <typename Record>
const Record& as(const CUpti_Activity& record) {
    return reinterpret_cast<const Record&>(record);
}

}  // namespace

std::uint64_t CuptiRecords::parse(std::uint8_t* buffer, std::size_t valid_size) {
    std::uint64_t count = 0;
    CUpti_Activity* record = nullptr;
    while (valid_size != 0 && library_.next_record(buffer, valid_size, &record) == CUPTI_SUCCESS) {
        parse(*record);
        ++count;
    }
    return count;
}

void CuptiRecords::parse(const CUpti_Activity& record) {
    switch (record.kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return kernel(as<CUpti_ActivityKernel9>(record));
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return memcpy(as<CUpti_ActivityMemcpy5>(record));
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            return memcpy(as<CUpti_ActivityMemcpyPtoP4>(record));
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return memset(as<CUpti_ActivityMemset4>(record));
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            return memory(as<CUpti_ActivityMemory4>(record));
        case CUPTI_ACTIVITY_KIND_OVERHEAD:
            return overhead(as<CUpti_ActivityOverhead3>(record));
        case CUPTI_ACTIVITY_KIND_JIT:
            return jit(as<CUpti_ActivityJit2>(record));
        default:
            return;
    }
}

template <typename Record>
ActivityRow CuptiRecords::row_of(const Record& record, ActivityKind kind) {
    const auto device = int(record.deviceId);
    return {.time = log_.since_start(std::int64_t(record.start)),
            .end = log_.since_start(std::int64_t(record.end)),
            .kind = kind,
            .name = 0,
            .device = std::int16_t(device),
            .context = record.contextId,
            .stream = stream(device, record.streamId),
            .correlation = correlation_of(record.correlationId),
            .bytes = 0,
            .copy_kind = CopyKind::none,
            .source = MemoryKind::none,
            .destination = MemoryKind::none,
            .graph = record.graphId,
            .graph_node = 0,
            .launch = 0};
}

// An interrupted activity, for example by the destruction of its context, has no times.
template <typename Record>
bool CuptiRecords::is_whole(const Record& record) {
    if (record.start != 0 && record.end != 0) {
        return true;
    }
    log_.count_lost(1);
    return false;
}

void CuptiRecords::kernel(const CUpti_ActivityKernel9& record) {
    if (!is_whole(record)) {
        return;
    }
    ActivityRow row = row_of(record, ActivityKind::kernel);
    row.name = log_.strings.intern_symbol(record.name);
    row.graph_node = record.graphNodeId;
    row.launch =
        log_.launch_id({.id = 0,
                        .grid_x = std::uint32_t(record.gridX),
                        .grid_y = std::uint32_t(record.gridY),
                        .grid_z = std::uint32_t(record.gridZ),
                        .block_x = std::uint32_t(record.blockX),
                        .block_y = std::uint32_t(record.blockY),
                        .block_z = std::uint32_t(record.blockZ),
                        .registers = record.registersPerThread,
                        .static_shared_memory = std::uint32_t(record.staticSharedMemory),
                        .dynamic_shared_memory = std::uint32_t(record.dynamicSharedMemory)});
    append(row);
}

template <typename Record>
void CuptiRecords::memcpy(const Record& record) {
    if (!is_whole(record)) {
        return;
    }
    ActivityRow row = row_of(record, ActivityKind::memcpy);
    row.copy_kind = copy_kind(record.copyKind);
    row.name = log_.strings.intern(copy_name(row.copy_kind));
    row.bytes = std::int64_t(record.bytes);
    row.source = memory_kind(record.srcKind);
    row.destination = memory_kind(record.dstKind);
    if constexpr (requires { record.srcDeviceId; }) {
        row.source_device = std::int16_t(record.srcDeviceId);
        row.destination_device = std::int16_t(record.dstDeviceId);
    }
    row.graph_node = record.graphNodeId;
    append(row);
}

void CuptiRecords::memset(const CUpti_ActivityMemset4& record) {
    if (!is_whole(record)) {
        return;
    }
    ActivityRow row = row_of(record, ActivityKind::memset);
    row.name = log_.strings.intern(std::string_view("memset"));
    row.bytes = std::int64_t(record.bytes);
    row.destination = memory_kind(record.memoryKind);
    row.graph_node = record.graphNodeId;
    append(row);
}

void CuptiRecords::append(const ActivityRow& row) {
    raise(last_ended_, row.correlation);
    if (row.graph == 0 || graph_nodes_) {
        log_.activities.append(row);
        return;
    }
    const std::lock_guard lock(graphs_mutex_);
    graphs_.add(row);
}

void CuptiRecords::finish() {
    const std::lock_guard lock(graphs_mutex_);
    graphs_.finish();
}

void CuptiRecords::memory(const CUpti_ActivityMemory4& record) {
    if (record.memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION &&
        record.memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE) {
        return;
    }
    const bool is_release =
        record.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    const auto device = int(record.deviceId);
    const char* source = library_.enable_allocation_source != nullptr ? record.source : nullptr;
    log_.memory_operations.append(
        {.time = log_.since_start(std::int64_t(record.timestamp)),
         .operation =
             is_release ? record::MemoryOperation::release : record::MemoryOperation::allocation,
         .memory = memory_kind(std::uint32_t(record.memoryKind)),
         .address = record.address,
         .bytes = std::int64_t(record.bytes),
         .device = std::int16_t(device),
         .stream = record.isAsync != 0 ? stream(device, record.streamId) : 0,
         .correlation = correlation_of(record.correlationId),
         .source = log_.strings.intern(source)});
}

void CuptiRecords::overhead(const CUpti_ActivityOverhead3& record) {
    const bool is_thread = record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
    log_.overheads.append({.time = log_.since_start(std::int64_t(record.start)),
                           .end = log_.since_start(std::int64_t(record.end)),
                           .kind = overhead_kind(std::uint32_t(record.overheadKind)),
                           .thread = is_thread ? record.objectId.pt.threadId : 0,
                           .correlation = correlation_of(record.correlationId)});
}

void CuptiRecords::jit(const CUpti_ActivityJit2& record) {
    const bool is_compilation = record.jitOperationType == CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
    log_.overheads.append(
        {.time = log_.since_start(std::int64_t(record.start)),
         .end = log_.since_start(std::int64_t(record.end)),
         .kind = is_compilation ? OverheadKind::jit_compile : OverheadKind::jit_load_cached,
         .thread = record.threadId,
         .correlation = correlation_of(record.correlationId)});
}

std::uint32_t CuptiRecords::stream(int device, std::uint32_t stream_id) {
    return stream_id == kNone ? 0 : log_.streams.by_tracer_id(device, stream_id);
}

}  // namespace gpuviz::cupti
