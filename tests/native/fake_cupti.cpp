// A CUPTI without a GPU, to be loaded as libcupti: a test makes the calls that it reports.

#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace {

CUpti_CallbackFunc callback = nullptr;
void* user_data = nullptr;
CUpti_BuffersCallbackRequestFunc requested = nullptr;
CUpti_BuffersCallbackCompleteFunc completed = nullptr;
CUpti_TimestampCallbackFunc timestamp = nullptr;
std::set<CUpti_CallbackId> enabled;
std::mutex mutex;  // guards ended
std::vector<CUpti_ActivityKernel9> ended;
std::uint32_t calls = 0;        // since the last attachment
std::uint32_t attachments = 0;  // so far

const auto stream = reinterpret_cast<CUstream>(0x5000);

// The calls that it knows.
const std::map<CUpti_CallbackId, const char*> names{
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventCreate, "cuEventCreate"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, "cuEventDestroy_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventRecord, "cuEventRecord"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventQuery, "cuEventQuery"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, "cuEventSynchronize"},
    {CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, "cuStreamWaitEvent"},
    {CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode, "cuGraphAddNode"},
};

// Returns whether the tracer wants to know of the call.
bool report(CUpti_CallbackId id, const void* parameters) {
    ++calls;
    if (callback == nullptr || !enabled.contains(id)) {
        return false;
    }
    std::uint64_t correlation_data = 0;
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data{};
    data.functionName = names.at(id);
    data.functionParams = parameters;
    data.functionReturnValue = &result;
    data.symbolName = "kernel";
    data.context = reinterpret_cast<CUcontext>(0x10);
    data.contextUid = 1;
    data.correlationData = &correlation_data;
    data.correlationId = calls;
    for (const auto site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
        data.callbackSite = site;
        callback(user_data, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    }
    return true;
}

}  // namespace

extern "C" {

// A launch on the only stream; its record is delivered with the next flush, unless it runs on.
void fake_launch_with(int runs_on, void** arguments) {
    cuLaunchKernel_params parameters{};
    parameters.hStream = stream;
    parameters.kernelParams = arguments;
    if (!report(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &parameters)) {
        return;
    }
    if (runs_on != 0) {
        return;
    }
    CUpti_ActivityKernel9 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.start = timestamp();
    record.end = record.start + 1;
    record.contextId = 1;
    record.streamId = 100 * attachments + 7;
    record.correlationId = calls;
    record.name = "kernel";
    const std::lock_guard lock(mutex);
    ended.push_back(record);
}

void fake_launch(int runs_on) { fake_launch_with(runs_on, nullptr); }

void fake_event_create(CUevent event, unsigned flags) {
    const cuEventCreate_params parameters{.phEvent = &event, .Flags = flags};
    report(CUPTI_DRIVER_TRACE_CBID_cuEventCreate, &parameters);
}
void fake_event_destroy(CUevent event) {
    const cuEventDestroy_v2_params parameters{event};
    report(CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, &parameters);
}
void fake_event_record(CUevent event) {
    const cuEventRecord_params parameters{.hEvent = event, .hStream = stream};
    report(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &parameters);
}
void fake_event_query(CUevent event) {
    const cuEventQuery_params parameters{event};
    report(CUPTI_DRIVER_TRACE_CBID_cuEventQuery, &parameters);
}
void fake_event_synchronize(CUevent event) {
    const cuEventSynchronize_params parameters{event};
    report(CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, &parameters);
}
void fake_stream_wait_event(CUevent event) {
    const cuStreamWaitEvent_params parameters{.hStream = stream, .hEvent = event, .Flags = 0};
    report(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &parameters);
}
// A launch that records an event, when all blocks have begun.
void fake_launch_with_event(CUevent event) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attribute.value.launchCompletionEvent.event = event;
    CUlaunchConfig config{};
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cuLaunchKernelEx_params parameters{};
    parameters.config = &config;
    report(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &parameters);
}
// A node of any kind, such as one that records an event.
void fake_graph_add_node() {
    const cuGraphAddNode_params parameters{};
    report(CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode, &parameters);
}

int fake_attachments() { return int(attachments); }

CUptiResult cuptiGetVersion(std::uint32_t* version) {
    *version = 130001;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
    *text = "CUPTI_SUCCESS";
    return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function,
                           void* data) {
    callback = function;
    user_data = data;
    calls = 0;
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(std::uintptr_t(++attachments));
    return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
    callback = nullptr;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        enable != 0 ? void(enabled.insert(id)) : void(enabled.erase(id));
    }
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t id, const char** name) {
    const auto known = names.find(id);
    *name = known == names.end() ? "cuDeviceGet" : known->second;
    return id < CUPTI_DRIVER_TRACE_CBID_SIZE ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiGetContextId(CUcontext, std::uint32_t* id) {
    *id = 1;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUcontext, std::uint32_t* device) {
    *device = 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream, std::uint8_t, std::uint32_t* id) {
    *id = 100 * attachments + 7;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
    requested = request;
    completed = complete;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
    timestamp = function;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t size,
                                       CUpti_Activity** record) {
    auto* const next = *record == nullptr ? buffer
                                          : reinterpret_cast<std::uint8_t*>(*record) +
                                                sizeof(CUpti_ActivityKernel9);
    if (next == buffer + size) {
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
    const std::lock_guard lock(mutex);
    for (std::size_t first = 0, count = 0; first < ended.size(); first += count) {
        std::uint8_t* buffer = nullptr;
        std::size_t size = 0;
        std::size_t most = 0;
        requested(&buffer, &size, &most);
        count = std::min(size / sizeof ended[0], ended.size() - first);
        std::memcpy(buffer, &ended[first], count * sizeof ended[0]);
        completed(nullptr, 0, buffer, size, count * sizeof ended[0]);
    }
    ended.clear();
    return CUPTI_SUCCESS;
}
CUptiResult cuptiFinalize() {
    calls = 0;
    return CUPTI_SUCCESS;
}

}  // extern "C"
