#include <algorithm>
#include <exception>

#include "cupti/cupti_parameters.hpp"
#include "cupti/cupti_stream_calls.hpp"
#include "cupti/cupti_tracer.hpp"
#include "record/clock.hpp"
#include "record/host_content.hpp"
#include "record/thread_id.hpp"

// The callbacks inside the program's CUDA calls.
namespace gpuviz::cupti {

using record::AccessMode;
using record::BlockTouches;

namespace {

constexpr std::int64_t kMostOwnCost = 1'000'000'000;

// Calls that gpuviz makes inside a callback are not the program's.
thread_local bool is_inside = false;

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
        const std::int64_t now_ns = record::now_ns();
        *data.correlationData = std::uint64_t(now_ns);
        if (record::HostSampler* const sampler = session_.host_sampler()) {
            sampler->entered(now_ns);
        }
        host_memory_.note_accesses(now_ns);
        if (id < calls_.size()) {
            on_enter(calls_[id], data);
        }
        return;
    }
    const auto began_ns = std::int64_t(*data.correlationData);
    if (id >= calls_.size() || began_ns == 0) {
        return;  // enabled during the call
    }
    const std::int64_t ended_ns = record::now_ns();
    const CuptiCall& call = calls_[id];
    if (record::HostSampler* const sampler = session_.host_sampler()) {
        sampler->exited(ended_ns, call.is_work());
    }
    if (call.is_about_waits() && has_succeeded(data)) {
        note_wait(call, data, began_ns, ended_ns);
    }
    record::ActivityLog& log = session_.log();
    if (call.is_about_graphs()) {
        try {
            on_graph_call(call, data);
        } catch (const std::exception&) {
            log.count_lost(1);
        }
    }
    if (call.kind == CuptiCall::Kind::copy) {
        host_memory_.note_pinned_copy(call, data);
    }
    thread_local std::vector<BlockTouches::Touch> touches;
    touches.clear();
    if (!is_recorded(call)) {
        other_calls_.fetch_add(1, std::memory_order_relaxed);
        if (is_followed(call)) {
            follow_exit(call, data, touches, 0);
        }
        host_memory_.note_call(call, data, began_ns, 0);
        return;
    }
    const CuptiStreams::Used used = stream_used(call, data);
    record::ApiCallRow row{
        .time = log.since_start(began_ns),
        .end = log.since_start(ended_ns),
        .name = name_of(id),
        .thread = record::current_thread_id(),
        .correlation = records_.correlation_of(data.correlationId),
        .stack = options_.stacks ? session_.capture_stack() : 0,
        .range = session_.current_range(),
        .stream = call.names_stream_in_row() ? used.id : 0,
    };
    host_memory_.note_call(call, data, began_ns, row.stack);
    if (data.context != nullptr) {
        note_recorded_call(call, data, used.id, began_ns, row.stack, touches);
    }
    row.own_cost = std::uint32_t(std::min<std::int64_t>(record::now_ns() - ended_ns, kMostOwnCost));
    log.api_calls.append(row, [&] { count(call, row); });
}

// With the log's lock, so that no other thread counts meanwhile.
void CuptiTracer::count(const CuptiCall& call, const record::ApiCallRow& row) noexcept {
    const auto store = [](auto& counter, auto value) {
        counter.store(value, std::memory_order_relaxed);
    };
    if (call.kind == CuptiCall::Kind::launch || call.kind == CuptiCall::Kind::launch_ex) {
        store(launches_, launches() + 1);
    }
    store(recorded_calls_, calls() + 1);
    store(own_ns_, own_ns() + row.own_cost);
    store(last_call_, std::max(last_call_.load(std::memory_order_relaxed), row.correlation));
    if (call.is_work()) {
        store(last_work_, std::max(last_work_.load(std::memory_order_relaxed), row.correlation));
    }
}

void CuptiTracer::note_recorded_call(const CuptiCall& call, const CUpti_CallbackData& data,
                                     std::uint32_t stream, std::int64_t began_ns,
                                     std::uint32_t stack,
                                     std::vector<BlockTouches::Touch>& touches) noexcept {
    try {
        const bool is_known =
            session_.touches() != nullptr && touch_blocks(call, data, began_ns, touches);
        if (is_followed(call)) {
            follow_exit(call, data, touches, stack);
        }
        if (captures_.is_any_open() && call.kind != CuptiCall::Kind::stream_destroy) {
            on_captured_call(call, data, stream, is_known);
        }
        if (call.kind == CuptiCall::Kind::graph_launch) {
            on_graph_launch(data, named_stream_of(call, data.functionParams), stream);
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

void CuptiTracer::on_enter(const CuptiCall& call, const CUpti_CallbackData& data) noexcept {
    if (call.may_join_capture()) {
        stream_used(call, data);
    }
    try {
        if (call.is_about_waits()) {
            waits_.enter(call, data.functionParams);
        }
        if (call.kind == CuptiCall::Kind::launch_ex) {
            const auto& launch = *static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
            waits_.launched(*launch.config);
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
    if (is_followed(call)) {
        follow_enter(call, data);
    }
    host_memory_.enter_wait(call, data);
}

void CuptiTracer::note_wait(const CuptiCall& call, const CUpti_CallbackData& data,
                            std::int64_t began_ns, std::int64_t ended_ns) noexcept {
    try {
        if (call.kind == CuptiCall::Kind::event_create) {
            const auto& made = *static_cast<const cuEventCreate_params*>(data.functionParams);
            return waits_.created(reinterpret_cast<std::uint64_t>(*made.phEvent), made.Flags);
        }
        // A thread needs no context to wait for an event.
        const CuptiStreams::Used used = stream_used(call, data);
        const CuptiWaits::Made made{.owner = {used.context, used.device},
                                    .stream = used.id,
                                    .correlation = records_.correlation_of(data.correlationId),
                                    .began_ns = began_ns,
                                    .ended_ns = ended_ns};
        if (call.kind != CuptiCall::Kind::event_record) {
            waits_.succeeded(call, made);
        } else if (!is_captured_record(call, data)) {
            waits_.recorded(member_at<std::uint64_t>(data.functionParams, call.event), made);
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

CuptiStreams::Used CuptiTracer::stream_used(const CuptiCall& call,
                                            const CUpti_CallbackData& data) noexcept {
    // After its call a destroyed stream is no stream any more.
    if (data.context == nullptr || call.kind == CuptiCall::Kind::stream_destroy) {
        return {};
    }
    try {
        const auto device = [&] { return devices_.of(data.context, data.contextUid); };
        const bool names_stream = call.stream >= 0 || call.kind == CuptiCall::Kind::launch_ex;
        if (names_stream || call.may_be_between_devices()) {
            const CUstream stream = names_stream ? stream_of(call, data.functionParams) : nullptr;
            return streams_.used(data.context, data.contextUid, stream, call.is_per_thread, device);
        }
        return {.device = device(), .context = data.contextUid};
    } catch (const std::exception&) {
        session_.log().count_lost(1);
        return {};
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

bool CuptiTracer::touch_blocks(const CuptiCall& call, const CUpti_CallbackData& data,
                               std::int64_t time_ns, std::vector<BlockTouches::Touch>& found) {
    const bool is_copy = call.kind == CuptiCall::Kind::copy;
    if (!is_copy && call.kind != CuptiCall::Kind::launch &&
        call.kind != CuptiCall::Kind::launch_ex) {
        return false;
    }
    BlockTouches& blocks = *session_.touches();
    const BlockTouches::Touch touch{time_ns, 0, records_.correlation_of(data.correlationId),
                                    AccessMode::unknown};
    const void* const parameters = data.functionParams;
    bool is_known = true;
    if (call.kind == CuptiCall::Kind::launch) {
        const auto& launch = *static_cast<const cuLaunchKernel_params*>(parameters);
        is_known = arguments_.find(launch.f, data.symbolName, launch.kernelParams,
                                   call.has_extra ? launch.extra : nullptr, blocks, touch, found);
    } else if (call.kind == CuptiCall::Kind::launch_ex) {
        const auto& launch = *static_cast<const cuLaunchKernelEx_params*>(parameters);
        is_known = arguments_.find(launch.f, data.symbolName, launch.kernelParams, launch.extra,
                                   blocks, touch, found);
    } else {
        const auto count = std::uint64_t(member_at<std::size_t>(parameters, call.count));
        const auto add = [&](std::int16_t offset, AccessMode mode) {
            const auto address = offset < 0 ? 0 : member_at<std::uint64_t>(parameters, offset);
            if (blocks.may_be_block(address)) {
                found.push_back({time_ns, address, records_.correlation_of(data.correlationId),
                                 mode, count * call.element});
            }
        };
        add(call.destination, AccessMode::write);
        if (!found.empty() && call.is_from_host()) {
            found.back().content =
                record::sampled_content(member_at<std::uint64_t>(parameters, call.source), count);
        }
        add(call.source, AccessMode::read);
        // What is there when the call returns: all of a copy to pageable memory.
        if (!found.empty() && call.is_to_host()) {
            found.back().content = record::sampled_content(
                member_at<std::uint64_t>(parameters, call.destination), count);
        }
    }
    if (!found.empty()) {
        blocks.add(found);
    }
    return is_known;
}

record::StreamCalls* CuptiTracer::follower_of(const CUpti_CallbackData& data) {
    return data.context == nullptr ? nullptr : session_.stream_calls(devices_.of(data.context, 0));
}

void CuptiTracer::follow_enter(const CuptiCall& call, const CUpti_CallbackData& data) noexcept {
    try {
        if (record::StreamCalls* const follower = follower_of(data)) {
            follower->enter(stream_call_of(call, data.functionParams));
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

void CuptiTracer::follow_exit(const CuptiCall& call, const CUpti_CallbackData& data,
                              const std::vector<BlockTouches::Touch>& touches,
                              std::uint32_t stack) noexcept {
    try {
        record::StreamCalls* const follower = follower_of(data);
        if (follower == nullptr) {
            return;
        }
        thread_local std::vector<std::uint64_t> addresses;
        addresses.clear();
        for (const BlockTouches::Touch& touch : touches) {
            addresses.push_back(touch.address);
        }
        follower->exit(stream_call_of(call, data.functionParams), has_succeeded(data), addresses,
                       stack);
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

void CuptiTracer::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data) noexcept {
    try {
        switch (id) {
            case CUPTI_CBID_RESOURCE_STREAM_CREATED:
                return streams_.created(data.context, devices_.of(data.context, 0),
                                        data.resourceHandle.stream);
            case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
                return streams_.destroyed(devices_.of(data.context, 0), data.resourceHandle.stream);
            case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
                return arguments_.forget_functions();
            case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
                flush();
                devices_.forget(data.context);
                return arguments_.forget_functions();
        }
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

}  // namespace gpuviz::cupti
