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
    std::int16_t destination;
    std::int16_t source;
};

using enum CuptiCall::Kind;

#define GPUVIZ_COPY(call, to, from) \
    Layout { #call, copy, -1, GPUVIZ_AT(call, to), GPUVIZ_AT(call, from) }
#define GPUVIZ_COPY_ASYNC(call, to, from) \
    Layout { #call, copy, GPUVIZ_AT(call, hStream), GPUVIZ_AT(call, to), GPUVIZ_AT(call, from) }
#define GPUVIZ_MEMSET(call) Layout{#call, copy, -1, GPUVIZ_AT(call, dstDevice), -1}
#define GPUVIZ_MEMSET_ASYNC(call) \
    Layout{#call, copy, GPUVIZ_AT(call, hStream), GPUVIZ_AT(call, dstDevice), -1}
#define GPUVIZ_ON_STREAM(call) Layout{#call, other, GPUVIZ_AT(call, hStream), -1, -1}

// Variants for the per-thread default stream (_ptsz, _ptds) have the same structures.
constexpr std::array kLayouts{
    Layout{"cuLaunchKernel", launch, GPUVIZ_AT(cuLaunchKernel, hStream), -1, -1},
    Layout{"cuLaunchCooperativeKernel", launch, GPUVIZ_AT(cuLaunchCooperativeKernel, hStream), -1,
           -1},
    Layout{"cuLaunchKernelEx", launch_ex, -1, -1, -1},
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
    GPUVIZ_MEMSET(cuMemsetD8_v2),
    GPUVIZ_MEMSET(cuMemsetD16_v2),
    GPUVIZ_MEMSET(cuMemsetD32_v2),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD8Async),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD16Async),
    GPUVIZ_MEMSET_ASYNC(cuMemsetD32Async),
    GPUVIZ_ON_STREAM(cuMemcpy2DAsync_v2),
    GPUVIZ_ON_STREAM(cuMemcpy3DAsync_v2),
    GPUVIZ_ON_STREAM(cuEventRecord),
    GPUVIZ_ON_STREAM(cuEventRecordWithFlags),
    GPUVIZ_ON_STREAM(cuStreamWaitEvent),
    GPUVIZ_ON_STREAM(cuStreamSynchronize),
    GPUVIZ_ON_STREAM(cuGraphLaunch),
    GPUVIZ_ON_STREAM(cuMemAllocAsync),
    GPUVIZ_ON_STREAM(cuMemFreeAsync),
};

#undef GPUVIZ_AT
#undef GPUVIZ_COPY
#undef GPUVIZ_COPY_ASYNC
#undef GPUVIZ_MEMSET
#undef GPUVIZ_MEMSET_ASYNC
#undef GPUVIZ_ON_STREAM

// Launches, copies, calls that block the host, and calls that make the device wait for the driver.
constexpr std::array<std::string_view, 27> kTraced{
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
};

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
        call.stream = layout->stream;
        call.destination = layout->destination;
        call.source = layout->source;
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
