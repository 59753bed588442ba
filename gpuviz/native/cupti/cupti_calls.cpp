#include "cupti/cupti_calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace gpuviz::cupti {
namespace {

#define GPUVIZ_AT(call, member) std::int16_t(offsetof(call##_params, member))

struct Layout {
    std::string_view name;
    CuptiCall::Kind kind;
    std::int16_t stream;
    std::int16_t destination = -1;
    std::int16_t source = -1;
    std::int16_t count = -1;
    std::int16_t event = -1;
    std::int16_t flags = -1;
    std::uint8_t element = 1;
};

using enum CuptiCall::Kind;

#define GPUVIZ_COPY(call, to, from)                                                    \
    Layout {                                                                           \
        .name = #call, .kind = copy, .stream = -1, .destination = GPUVIZ_AT(call, to), \
        .source = GPUVIZ_AT(call, from), .count = GPUVIZ_AT(call, ByteCount)           \
    }
#define GPUVIZ_COPY_ASYNC(call, to, from)                                    \
    Layout {                                                                 \
        .name = #call, .kind = copy, .stream = GPUVIZ_AT(call, hStream),     \
        .destination = GPUVIZ_AT(call, to), .source = GPUVIZ_AT(call, from), \
        .count = GPUVIZ_AT(call, ByteCount)                                  \
    }
#define GPUVIZ_MEMSET(call, bytes)                                                            \
    Layout {                                                                                  \
        .name = #call, .kind = copy, .stream = -1, .destination = GPUVIZ_AT(call, dstDevice), \
        .count = GPUVIZ_AT(call, N), .element = bytes                                         \
    }
#define GPUVIZ_MEMSET_ASYNC(call, bytes)                                                         \
    Layout {                                                                                     \
        .name = #call, .kind = copy, .stream = GPUVIZ_AT(call, hStream),                         \
        .destination = GPUVIZ_AT(call, dstDevice), .count = GPUVIZ_AT(call, N), .element = bytes \
    }
#define GPUVIZ_ON_STREAM(call, what) \
    Layout { .name = #call, .kind = what, .stream = GPUVIZ_AT(call, hStream) }
#define GPUVIZ_ON_EVENT(call, what) \
    Layout { .name = #call, .kind = what, .stream = -1, .event = GPUVIZ_AT(call, hEvent) }
#define GPUVIZ_WITH_EVENT(call, what)                                    \
    Layout {                                                             \
        .name = #call, .kind = what, .stream = GPUVIZ_AT(call, hStream), \
        .event = GPUVIZ_AT(call, hEvent)                                 \
    }

// Variants for the per-thread default stream (_ptsz, _ptds) have the same structures.
constexpr std::array kLayouts{
    GPUVIZ_ON_STREAM(cuLaunchKernel, launch),
    GPUVIZ_ON_STREAM(cuLaunchCooperativeKernel, launch),
    Layout{.name = "cuLaunchKernelEx", .kind = launch_ex, .stream = -1},
    GPUVIZ_COPY(cuMemcpyHtoD_v2, dstDevice, srcHost),
    GPUVIZ_COPY(cuMemcpyDtoH_v2, dstHost, srcDevice),
    GPUVIZ_COPY(cuMemcpyDtoD_v2, dstDevice, srcDevice),
    GPUVIZ_COPY(cuMemcpy, dst, src),
    GPUVIZ_COPY(cuMemcpyPeer, dstDevice, srcDevice),
    GPUVIZ_COPY_ASYNC(cuMemcpyHtoDAsync_v2, dstDevice, srcHost),
    GPUVIZ_COPY_ASYNC(cuMemcpyDtoHAsync_v2, dstHost, srcDevice),
    GPUVIZ_COPY_ASYNC(cuMemcpyDtoDAsync_v2, dstDevice, srcDevice),
    GPUVIZ_COPY_ASYNC(cuMemcpyAsync, dst, src),
    GPUVIZ_COPY_ASYNC(cuMemcpyPeerAsync, dstDevice, srcDevice),
    GPUVIZ_MEMSET(cuMemsetD8_v2, 1),
    GPUVIZ_MEMSET(cuMemsetD16_v2, 2),
    GPUVIZ_MEMSET(cuMemsetD32_v2, 4),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD8Async, 1),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD16Async, 2),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD32Async, 4),
    GPUVIZ_ON_STREAM(cuMemcpy2DAsync_v2, other),
    GPUVIZ_ON_STREAM(cuMemcpy3DAsync_v2, other),
    Layout{.name = "cuEventCreate", .kind = event_create, .stream = -1},
    GPUVIZ_ON_EVENT(cuEventQuery, event_query),
    GPUVIZ_ON_STREAM(cuStreamQuery, stream_query),
    GPUVIZ_WITH_EVENT(cuEventRecord, event_record),
    Layout{.name = "cuEventRecordWithFlags",
           .kind = event_record,
           .stream = GPUVIZ_AT(cuEventRecordWithFlags, hStream),
           .event = GPUVIZ_AT(cuEventRecordWithFlags, hEvent),
           .flags = GPUVIZ_AT(cuEventRecordWithFlags, flags)},
    GPUVIZ_WITH_EVENT(cuStreamWaitEvent, stream_wait_event),
    GPUVIZ_ON_EVENT(cuEventSynchronize, event_synchronize),
    GPUVIZ_ON_EVENT(cuEventDestroy, event_destroy),
    GPUVIZ_ON_EVENT(cuEventDestroy_v2, event_destroy),
    GPUVIZ_ON_EVENT(cuCtxRecordEvent, other),
    GPUVIZ_ON_EVENT(cuGreenCtxRecordEvent, other),
    Layout{.name = "cuGraphAddEventRecordNode",
           .kind = graph_change,
           .stream = -1,
           .event = GPUVIZ_AT(cuGraphAddEventRecordNode, event)},
    Layout{.name = "cuGraphEventRecordNodeSetEvent",
           .kind = graph_change,
           .stream = -1,
           .event = GPUVIZ_AT(cuGraphEventRecordNodeSetEvent, event)},
    Layout{.name = "cuGraphExecEventRecordNodeSetEvent",
           .kind = graph_change,
           .stream = -1,
           .event = GPUVIZ_AT(cuGraphExecEventRecordNodeSetEvent, event)},
    GPUVIZ_ON_STREAM(cuStreamSynchronize, stream_synchronize),
    GPUVIZ_ON_STREAM(cuStreamDestroy_v2, stream_destroy),
    Layout{.name = "cuCtxSynchronize", .kind = device_synchronize, .stream = -1},
    // The runtime of CUDA 13 calls this one, for the current context.
    Layout{.name = "cuCtxSynchronize_v2", .kind = device_synchronize, .stream = -1},
    GPUVIZ_ON_STREAM(cuLaunchHostFunc, host_function),
    GPUVIZ_ON_STREAM(cuStreamAddCallback, host_function),
    GPUVIZ_ON_STREAM(cuGraphLaunch, graph_launch),
    GPUVIZ_ON_STREAM(cuMemAllocAsync, other),
    GPUVIZ_ON_STREAM(cuMemFreeAsync, other),
};

#undef GPUVIZ_AT
#undef GPUVIZ_COPY
#undef GPUVIZ_COPY_ASYNC
#undef GPUVIZ_MEMSET
#undef GPUVIZ_MEMSET_ASYNC
#undef GPUVIZ_ON_STREAM
#undef GPUVIZ_ON_EVENT
#undef GPUVIZ_WITH_EVENT

// Launches, copies, calls that block the host, and calls that make the device wait for the driver.
constexpr std::array<std::string_view, 28> kTraced{
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuStreamSync",
    "cuEventSync",
    "cuCtxSync",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemHostAlloc",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemPrefetch",
    "cuModuleLoad",
    "cuModuleUnload",
    "cuLibraryLoad",
    "cuLinkComplete",
    "cuGraphInstantiate",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuStreamAddCallback",
};

// Kinds of calls about graphs that have several versions, by the start of their names.
CuptiCall::Kind kind_about_graphs(std::string_view name) {
    if (name.starts_with("cuStreamBeginCapture")) {
        return capture_begin;
    }
    if (name.starts_with("cuStreamEndCapture")) {
        return capture_end;
    }
    if (name.starts_with("cuGraphInstantiate")) {
        return graph_instantiation;
    }
    if (name == "cuGraphDestroy") {
        return graph_destruction;
    }
    constexpr std::array changes{"SetParams", "SetEvent", "SetEnabled",
                                 "Update",    "Add",      "DestroyNode"};
    const bool is_change = name.starts_with("cuGraph") && !name.starts_with("cuGraphics") &&
                           std::any_of(changes.begin(), changes.end(), [&](const char* part) {
                               return name.find(part) != name.npos;
                           });
    return is_change ? graph_change : other;
}

std::string_view without_suffix(std::string_view name) {
    for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
        if (name.ends_with(suffix)) {
            name.remove_suffix(suffix.size());
        }
    }
    return name;
}

CuptiCall call_named(const char* name) {
    CuptiCall call;
    call.name = name;
    const std::string_view base = without_suffix(name);
    call.is_per_thread = base.size() != std::string_view(name).size();
    call.is_traced = std::any_of(kTraced.begin(), kTraced.end(),
                                 [&](std::string_view start) { return base.starts_with(start); });
    const auto* const layout = std::find_if(
        kLayouts.begin(), kLayouts.end(), [&](const Layout& known) { return known.name == base; });
    if (layout != kLayouts.end()) {
        call.kind = layout->kind;
        // cuLaunchCooperativeKernel has the members of cuLaunchKernel, but for `extra`.
        call.has_extra = base == "cuLaunchKernel";
        call.stream = layout->stream;
        call.destination = layout->destination;
        call.source = layout->source;
        call.count = layout->count;
        call.event = layout->event;
        call.flags = layout->flags;
        call.element = layout->element;
    } else {
        call.kind = kind_about_graphs(base);
        // All versions begin with the stream.
        call.stream = call.kind == capture_begin ? 0 : -1;
    }
    return call;
}

}  // namespace

std::vector<CuptiCall> driver_calls(const CuptiLibrary& library) {
    std::vector<CuptiCall> calls(1);  // ids begin at 1
    const char* name = nullptr;
    while (library.get_callback_name(CUPTI_CB_DOMAIN_DRIVER_API, CUpti_CallbackId(calls.size()),
                                     &name) == CUPTI_SUCCESS &&
           name != nullptr) {
        calls.push_back(call_named(name));
        name = nullptr;
    }
    return calls;
}

}  // namespace gpuviz::cupti
