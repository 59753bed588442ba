#include <cstring>

#include "cupti/cupti_tracer.hpp"
#include "record/clock.hpp"
#include "record/thread_id.hpp"

// The callbacks inside the program's CUDA calls.
namespace gpuviz::cupti {

using record::AccessMode;
using record::BlockTouches;

namespace {

// Calls that gpuviz makes inside a callback are not the program's.
thread_local bool is_inside = false;

template <typename Value>
Value member_at(const void* structure, std::int16_t offset) {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(structure) + offset, sizeof value);
    return value;
}

CUstream stream_of(const CuptiCall& call, const void* parameters) {
    if (call.kind == CuptiCall::Kind::launch_ex) {
        return static_cast<const cuLaunchKernelEx_params*>(parameters)->config->hStream;
    }
    return member_at<CUstream>(parameters, call.stream);
}

}  // namespace

void CUPTIAPI CuptiTracer::callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                    const void* data) {
    auto& tracer = *static_cast<CuptiTracer*>(self);
    if (is_inside) {
        return;
    }
    is_inside = true;
    tracer.inside_.fetch_add(1, std::memory_order_relaxed);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        tracer.on_call(id, *static_cast<const CUpti_CallbackData*>(data));
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        tracer.on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
    }
    tracer.inside_.fetch_sub(1, std::memory_order_release);
    is_inside = false;
}

void CuptiTracer::on_call(CUpti_CallbackId id, const CUpti_CallbackData& data) noexcept {
    if (data.callbackSite == CUPTI_API_ENTER) {
        *data.correlationData = std::uint64_t(record::now_ns());
        return;
    }
    const auto began_ns = std::int64_t(*data.correlationData);
    if (id >= calls_.size() || began_ns == 0) {
        return;  // enabled during the call
    }
    const CuptiCall& call = calls_[id];
    const bool is_launch =
        call.kind == CuptiCall::Kind::launch || call.kind == CuptiCall::Kind::launch_ex;
    record::ActivityLog& log = session_.log();
    log.api_calls.append({.time = log.since_start(began_ns),
                          .end = log.since_start(record::now_ns()),
                          .name = name_of(id),
                          .thread = record::current_thread_id(),
                          .correlation = data.correlationId,
                          .stack = options_.stacks ? session_.capture_stack() : 0,
                          .range = session_.current_range()});
    launches_.fetch_add(is_launch, std::memory_order_relaxed);
    if (data.context == nullptr) {
        return;
    }
    try {
        const auto device = [&] { return device_of(data.context, data.contextUid); };
        if (call.stream >= 0 || call.kind == CuptiCall::Kind::launch_ex) {
            streams_.used(data.context, data.contextUid, stream_of(call, data.functionParams),
                          call.is_per_thread, device);
        } else {
            device();
        }
        if (session_.touches() != nullptr && call.kind != CuptiCall::Kind::other) {
            touch_blocks(call, data, began_ns);
        }
    } catch (const std::exception&) {
        log.count_lost(1);
    }
}

std::uint32_t CuptiTracer::name_of(CUpti_CallbackId id) noexcept {
    std::uint32_t name = call_names_[id].load(std::memory_order_relaxed);
    if (name == 0) {
        name = session_.log().strings.intern(calls_[id].name);
        call_names_[id].store(name, std::memory_order_relaxed);
    }
    return name;
}

void CuptiTracer::touch_blocks(const CuptiCall& call, const CUpti_CallbackData& data,
                               std::int64_t time_ns) {
    thread_local std::vector<BlockTouches::Touch> found;
    found.clear();
    BlockTouches& blocks = *session_.touches();
    const BlockTouches::Touch touch{time_ns, 0, data.correlationId, AccessMode::unknown};
    const void* const parameters = data.functionParams;
    if (call.kind == CuptiCall::Kind::launch) {
        // cuLaunchCooperativeKernel has the same members up to kernelParams, and no `extra`.
        const auto& launch = *static_cast<const cuLaunchKernel_params*>(parameters);
        const bool has_extra = std::strncmp(call.name, "cuLaunchKernel", 14) == 0;
        arguments_.find(launch.f, data.symbolName, launch.kernelParams,
                        has_extra ? launch.extra : nullptr, blocks, touch, found);
    } else if (call.kind == CuptiCall::Kind::launch_ex) {
        const auto& launch = *static_cast<const cuLaunchKernelEx_params*>(parameters);
        arguments_.find(launch.f, data.symbolName, launch.kernelParams, launch.extra, blocks, touch,
                        found);
    } else {
        const auto add = [&](std::int16_t offset, AccessMode mode) {
            const auto address = offset < 0 ? 0 : member_at<std::uint64_t>(parameters, offset);
            if (blocks.may_be_block(address)) {
                found.push_back({time_ns, address, data.correlationId, mode});
            }
        };
        add(call.destination, AccessMode::write);
        add(call.source, AccessMode::read);
    }
    if (!found.empty()) {
        blocks.add(found);
    }
}

void CuptiTracer::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data) noexcept {
    try {
        switch (id) {
            case CUPTI_CBID_RESOURCE_STREAM_CREATED:
                return streams_.created(data.context, device_of(data.context, 0),
                                        data.resourceHandle.stream);
            case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
                return streams_.destroyed(data.context, device_of(data.context, 0),
                                          data.resourceHandle.stream);
            case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
                return arguments_.forget_functions();
            case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
                flush();
                const std::lock_guard lock(devices_mutex_);
                devices_.erase(data.context);
                return arguments_.forget_functions();
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

// `number` is CUPTI's id of the context; 0 if unavailable.
int CuptiTracer::device_of(CUcontext context, std::uint32_t number) {
    {
        const std::lock_guard lock(devices_mutex_);
        const auto known = devices_.find(context);
        if (known != devices_.end()) {
            return known->second;
        }
    }
    std::uint32_t device = 0;
    library_->get_device_id(context, &device);
    if (number != 0) {
        records_.context_is_on(number, int(device));
        const std::lock_guard lock(devices_mutex_);
        devices_[context] = int(device);
    }
    return int(device);
}

}  // namespace gpuviz::cupti
