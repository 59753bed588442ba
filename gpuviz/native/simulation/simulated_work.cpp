#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "record/thread_id.hpp"
#include "simulation/followed_call.hpp"
#include "simulation/simulated_call.hpp"
#include "simulation/simulated_gpu.hpp"

// Kernels, copies, memsets and allocations of a simulated GPU.
namespace gpuviz::simulation {

using device::StreamHandle;
using record::AccessMode;
using record::ActivityKind;
using record::ActivityRow;
using record::CallSite;
using record::CopyKind;
using record::GraphCallKind;
using record::MemoryKind;
using record::MemoryOperation;

namespace {

constexpr std::uint64_t node_bits = 32;

record::StreamCall work_on(StreamHandle stream) {
    return {.kind = record::StreamCall::Kind::work, .stream = stream};
}

void check(const GpuKernel& kernel) {
    if (kernel.duration_ns < 1) {
        throw std::invalid_argument("The duration of kernel " + kernel.name +
                                    " must be at least 1 ns, got " +
                                    std::to_string(kernel.duration_ns) + ".");
    }
    if (kernel.multiprocessors < 1 || kernel.multiprocessors > GpuSchedule::multiprocessors) {
        throw std::invalid_argument("Kernel " + kernel.name + " must fill between 1 and " +
                                    std::to_string(GpuSchedule::multiprocessors) +
                                    " multiprocessors, got " +
                                    std::to_string(kernel.multiprocessors) + ".");
    }
}

std::int64_t time_for(std::uint64_t bytes, double rate) {
    return SimulatedGpu::copy_latency_ns + std::int64_t(std::ceil(double(bytes) / rate));
}

std::string_view call_of(const GpuCopy& copy) {
    switch (copy.kind) {
        case CopyKind::host_to_device:
            return copy.async ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyHtoD_v2";
        case CopyKind::device_to_host:
            return copy.async ? "cuMemcpyDtoHAsync_v2" : "cuMemcpyDtoH_v2";
        case CopyKind::device_to_device:
            return copy.async ? "cuMemcpyDtoDAsync_v2" : "cuMemcpyDtoD_v2";
        default:
            throw std::invalid_argument(
                "A copy must be host_to_device, device_to_host or "
                "device_to_device, got number " +
                std::to_string(int(copy.kind)) + ".");
    }
}

GpuWork work_of(const GpuCopy& copy) {
    if (copy.kind == CopyKind::device_to_device) {
        return {.engine = GpuWork::Engine::device_memory,
                .duration_ns = time_for(copy.bytes, SimulatedGpu::device_rate)};
    }
    return {.engine = copy.kind == CopyKind::host_to_device ? GpuWork::Engine::host_to_device
                                                            : GpuWork::Engine::device_to_host,
            .duration_ns = time_for(
                copy.bytes, copy.pinned ? SimulatedGpu::pinned_rate : SimulatedGpu::pageable_rate)};
}

// Whether the host waits until the copy is done.
bool blocks_host(const GpuCopy& copy) {
    if (copy.kind == CopyKind::device_to_device) {
        return false;
    }
    const bool is_staged = copy.kind == CopyKind::host_to_device && !copy.pinned &&
                           copy.bytes <= SimulatedGpu::staged_bytes;
    return !is_staged && (!copy.async || !copy.pinned);
}

std::vector<GpuAccess> accesses_of(const GpuCopy& copy) {
    std::vector<GpuAccess> accesses;
    if (copy.source != 0) {
        accesses.push_back({copy.source, AccessMode::read});
    }
    if (copy.destination != 0) {
        accesses.push_back({copy.destination, AccessMode::write});
    }
    return accesses;
}

}  // namespace

ActivityRow SimulatedGpu::row_of(const Call& call, const GpuStream& stream) const {
    ActivityRow row{};
    row.device = std::int16_t(device_);
    row.context = Call::context;
    row.stream = stream.row;
    row.correlation = call.correlation;
    return row;
}

ActivityRow SimulatedGpu::row_of(const Call& call, const GpuStream& stream,
                                 const GpuKernel& kernel) {
    ActivityRow row = row_of(call, stream);
    row.kind = ActivityKind::kernel;
    row.name = records_.name_id(kernel.name);
    row.launch = records_.launch_id(kernel.configuration);
    return row;
}

SimulatedGpu::Id SimulatedGpu::add_kernel(Call& call, GpuStream& stream, const GpuKernel& kernel,
                                          Id also_after) {
    records_.touch(kernel.accesses, call.correlation, call.began_ns, kernel.arguments);
    return add(call, stream,
               {.engine = GpuWork::Engine::multiprocessors,
                .duration_ns = kernel.duration_ns,
                .multiprocessors = kernel.multiprocessors,
                .priority = stream.priority},
               also_after);
}

void SimulatedGpu::launch(StreamHandle handle, const GpuKernel& kernel, const CallSite& site) {
    check(kernel);
    const FollowedCall followed(*this, work_on(handle), site, kernel.accesses);
    Call call(*this, "cuLaunchKernel", site);
    GpuStream& stream = streams_.at(handle);
    records_.expect(add_kernel(call, stream, kernel, 0), row_of(call, stream, kernel));
}

std::uint32_t SimulatedGpu::begin_capture(StreamHandle stream, const CallSite& site) {
    const FollowedCall followed(*this, work_on(stream), site);
    const Call call(*this, "cuStreamBeginCapture_v2", site);
    static_cast<void>(streams_.at(stream));
    const std::uint32_t number = ++captures_begun_;
    captures_[number] = {stream, number, records_.recording()};
    return number;
}

void SimulatedGpu::capture(std::uint32_t number, const GpuKernel& kernel, const CallSite& site) {
    check(kernel);
    const Call call(*this, "cuLaunchKernel", site);
    Graph& graph = at(captures_, number);
    graph.kernels.push_back(kernel);
    graph.recording = graph.recording == records_.recording() ? graph.recording : 0;
    records_.touch(kernel.accesses, call.correlation, call.began_ns, kernel.arguments);
    records_.graph_call({.correlation = call.correlation,
                         .kind = GraphCallKind::kernel,
                         .name = records_.name_id(kernel.name),
                         .stream = streams_.at(graph.stream).row,
                         .capture = number,
                         .graph = 0,
                         .event = 0});
}

std::vector<std::uint64_t> SimulatedGpu::captured_addresses(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> addresses;
    for (const GpuKernel& kernel : at(captures_, number).kernels) {
        for (const GpuAccess& access : kernel.accesses) {
            addresses.push_back(access.address);
        }
    }
    return addresses;
}

std::uint32_t SimulatedGpu::end_capture(std::uint32_t number, const CallSite& site) {
    const Call call(*this, "cuGraphInstantiateWithFlags", site);
    graphs_[++graphs_created_] = std::move(at(captures_, number));
    captures_.erase(number);
    return graphs_created_;
}

void SimulatedGpu::destroy_graph(std::uint32_t graph, const CallSite& site) {
    const Call call(*this, "cuGraphExecDestroy", site);
    static_cast<void>(at(graphs_, graph));
    graphs_.erase(graph);
}

SimulatedGpu::Graph& SimulatedGpu::at(std::map<std::uint32_t, Graph>& graphs,
                                      std::uint32_t number) {
    const auto found = graphs.find(number);
    if (found == graphs.end()) {
        throw std::invalid_argument("The simulated GPU has no graph " + std::to_string(number) +
                                    "; it was destroyed, or belongs to another GPU.");
    }
    return found->second;
}

void SimulatedGpu::launch_graph(StreamHandle handle, std::uint32_t id, const CallSite& site) {
    const FollowedCall followed(*this, work_on(handle), site);
    Call call(*this, "cuGraphLaunch", site);
    Graph& graph = at(graphs_, id);
    GpuStream& stream = streams_.at(handle);
    const bool is_known = graph.recording == records_.recording();
    records_.graph_call({.correlation = call.correlation,
                         .kind = GraphCallKind::launch,
                         .name = 0,
                         .stream = stream.row,
                         .capture = is_known ? graph.capture : 0,
                         .graph = is_known ? id : 0,
                         .event = 0});
    std::uint64_t node = std::uint64_t{id} << node_bits;
    Id first = 0;
    for (const GpuKernel& kernel : graph.kernels) {
        graph.last = add_kernel(call, stream, kernel, graph.last);
        first = first == 0 ? graph.last : first;
        if (records_.graph_nodes()) {
            ActivityRow row = row_of(call, stream, kernel);
            row.graph = id;
            row.graph_node = ++node;
            records_.expect(graph.last, row);
        }
    }
    if (first != 0 && !records_.graph_nodes()) {
        ActivityRow row = row_of(call, stream);
        row.kind = ActivityKind::graph;
        row.graph = id;
        records_.expect(first, graph.last, row);
    }
}

void SimulatedGpu::copy(StreamHandle handle, const GpuCopy& copy, const CallSite& site,
                        const Patience& patience) {
    const std::vector<GpuAccess> accesses = accesses_of(copy);
    const FollowedCall followed(*this, work_on(copy.async ? handle : 0), site, accesses);
    Call call(*this, call_of(copy), site);
    GpuStream& stream = streams_.at(copy.async ? handle : 0);
    const Id work = add(call, stream, work_of(copy));
    const MemoryKind host = copy.pinned ? MemoryKind::pinned : MemoryKind::pageable;
    ActivityRow row = row_of(call, stream);
    row.kind = ActivityKind::memcpy;
    row.bytes = std::int64_t(copy.bytes);
    row.copy_kind = copy.kind;
    row.source = copy.kind == CopyKind::host_to_device ? host : MemoryKind::device;
    row.destination = copy.kind == CopyKind::device_to_host ? host : MemoryKind::device;
    records_.expect(work, row);
    records_.touch(accesses, call.correlation, call.began_ns);
    if (blocks_host(copy)) {
        call.wait_for(std::span(&work, 1), patience);
    }
}

void SimulatedGpu::fill(StreamHandle handle, std::uint64_t address, std::uint64_t bytes,
                        const CallSite& site) {
    const GpuAccess access{address, AccessMode::write};
    const FollowedCall followed(*this, work_on(handle), site, std::span(&access, 1));
    Call call(*this, "cuMemsetD8Async", site);
    GpuStream& stream = streams_.at(handle);
    const Id work =
        add(call, stream,
            {.engine = GpuWork::Engine::device_memory, .duration_ns = time_for(bytes, fill_rate)});
    ActivityRow row = row_of(call, stream);
    row.kind = ActivityKind::memset;
    row.bytes = std::int64_t(bytes);
    row.destination = MemoryKind::device;
    records_.expect(work, row);
    records_.touch(std::span(&access, 1), call.correlation, call.began_ns);
}

void SimulatedGpu::allocated(std::string_view name, std::uint64_t address, std::uint64_t bytes,
                             MemoryKind memory) {
    Call call(*this, name, {.thread = record::current_thread_id()});
    call.let_pass(allocation_ns);
    if (address != 0) {
        records_.memory_operation(
            row_of(call, MemoryOperation::allocation, memory, address, bytes));
    }
}

void SimulatedGpu::release(std::string_view name, std::uint64_t address, std::uint64_t bytes,
                           bool waits, MemoryKind memory) {
    Call call(*this, name, {.thread = record::current_thread_id()});
    if (waits && !abandoned_) {
        call.wait_for(streams_.newest(), nullptr);
    }
    records_.memory_operation(row_of(call, MemoryOperation::release, memory, address, bytes));
}

record::MemoryOperationRow SimulatedGpu::row_of(const Call& call, MemoryOperation operation,
                                                MemoryKind memory, std::uint64_t address,
                                                std::uint64_t bytes) {
    return {.time = call.began_ns,
            .operation = operation,
            .memory = memory,
            .address = address,
            .bytes = std::int64_t(bytes),
            .device = std::int16_t(device_),
            .stream = 0,
            .correlation = call.correlation,
            .source = records_.name_id("gpuviz")};
}

}  // namespace gpuviz::simulation
