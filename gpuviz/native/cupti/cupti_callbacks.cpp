#include <algorithm>
#include <array>
#include <span>

#include "cupti/cupti_parameters.hpp"
#include "cupti/cupti_tracer.hpp"
#include "record/clock.hpp"
#include "record/host_content.hpp"
#include "record/page_guard.hpp"
#include "record/pinned_copies.hpp"
#include "record/thread_id.hpp"

// The callbacks inside the program's CUDA calls.
namespace gpuviz::cupti {

using record::AccessMode;
using record::BlockTouches;

namespace {

constexpr std::int64_t kMostOwnCost = 1'000'000'000;

// Calls that gpuviz makes inside a callback are not the program's.
thread_local bool is_inside = false;

record::StreamCall stream_call_of(const CuptiCall& call, const void* parameters) {
    using Kind = CuptiCall::Kind;
    using Follow = record::StreamCall::Kind;
    const auto kind = [&] {
        switch (call.kind) {
            case Kind::event_record:
                return Follow::event_record;
            case Kind::stream_wait_event:
                return Follow::stream_wait_event;
            case Kind::event_synchronize:
                return Follow::event_synchronize;
            case Kind::event_destroy:
                return Follow::event_destroy;
            case Kind::stream_synchronize:
                return Follow::stream_synchronize;
            case Kind::stream_destroy:
                return Follow::stream_destroy;
            case Kind::device_synchronize:
                return Follow::device_synchronize;
            default:
                return Follow::work;
        }
    };
    record::StreamCall followed{.kind = kind()};
    if (call.stream >= 0 || call.kind == Kind::launch_ex) {
        followed.stream = handle_of(named_stream_of(call, parameters));
    } else if (call.is_per_thread) {
        followed.stream = handle_of(CU_STREAM_PER_THREAD);  // of a synchronous copy
    }
    if (call.event >= 0) {
        followed.event = member_at<std::uint64_t>(parameters, call.event);
    }
    return followed;
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
        const std::int64_t now_ns = record::now_ns();
        *data.correlationData = std::uint64_t(now_ns);
        if (record::HostSampler* const sampler = session_.host_sampler()) {
            sampler->entered(now_ns);
        }
        note_accesses(now_ns);
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
        note_pinned_copy(call, data);
    }
    thread_local std::vector<BlockTouches::Touch> touches;
    touches.clear();
    if (!is_recorded(call)) {
        other_calls_.fetch_add(1, std::memory_order_relaxed);
        if (is_followed(call)) {
            follow_exit(call, data, touches, 0);
        }
        note_host_memory(call, data, began_ns, 0);
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
    note_host_memory(call, data, began_ns, row.stack);
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
    enter_wait(call, data);
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
        const auto device = [&] { return device_of(data.context, data.contextUid); };
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

// A synchronous copy is done when its call returns.
void CuptiTracer::note_pinned_copy(const CuptiCall& call, const CUpti_CallbackData& data) noexcept {
    record::PinnedUses* const pinned = session_.pinned_uses();
    if (pinned == nullptr || call.stream < 0 || data.context == nullptr || !has_succeeded(data)) {
        return;
    }
    std::array<std::uint64_t, 2> addresses{};
    std::size_t count = 0;
    for (const std::int16_t offset : {call.source, call.destination}) {
        const auto address = offset < 0 ? 0 : member_at<std::uint64_t>(data.functionParams, offset);
        if (pinned->may_contain(address)) {
            addresses[count++] = address;
        }
    }
    if (count == 0) {
        return;
    }
    try {
        pinned->used(device_of(data.context, data.contextUid),
                     stream_call_of(call, data.functionParams).stream,
                     std::span(addresses).first(count));
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

// What the thread did to pinned memory since its last call; this one's time is the latest it can
// be.
void CuptiTracer::note_accesses(std::int64_t now_ns) noexcept {
    record::PinnedCopies* const copies = session_.pinned_copies();
    if (copies != nullptr && copies->is_watching() && copies->is_accessed()) {
        copies->accessed({now_ns, {session_.capture_stack(), record::current_thread_id()}});
    }
}

// What waits, or may: once it knows that a copy has ended, the host does what it likes.
void CuptiTracer::enter_wait(const CuptiCall& call, const CUpti_CallbackData& data) noexcept {
    using Kind = CuptiCall::Kind;
    const bool is_synchronous = call.kind == Kind::copy && call.stream < 0;
    if (call.kind != Kind::event_synchronize && call.kind != Kind::stream_synchronize &&
        call.kind != Kind::device_synchronize && !is_synchronous) {
        return;
    }
    if (record::PageGuard* const guard = session_.page_guard()) {
        guard->lift_all();
    }
    record::PinnedCopies* const copies = session_.pinned_copies();
    if (copies == nullptr || !copies->has_pending()) {
        return;
    }
    record::StreamCall waiting = stream_call_of(call, data.functionParams);
    if (is_synchronous) {
        waiting.kind = record::StreamCall::Kind::device_synchronize;
    }
    copies->waits(waiting,
                  {std::int64_t(*data.correlationData),
                   {.stack = session_.capture_stack(), .thread = record::current_thread_id()}});
}

void CuptiTracer::note_host_memory(const CuptiCall& call, const CUpti_CallbackData& data,
                                   std::int64_t began_ns, std::uint32_t stack) noexcept {
    using Kind = CuptiCall::Kind;
    record::PinnedCopies* const copies = session_.pinned_copies();
    record::PageGuard* const guard = session_.page_guard();
    if (copies == nullptr) {
        return;
    }
    if (call.kind == Kind::copy && copies->is_watching()) {
        copies->pass_over();  // the driver may read small sources itself
    }
    if (!has_succeeded(data)) {
        return;
    }
    const record::PinnedCopies::Moment moment{
        began_ns, {.stack = stack, .thread = record::current_thread_id()}};
    const record::StreamCall made = stream_call_of(call, data.functionParams);
    const bool is_query = call.kind == Kind::event_query || call.kind == Kind::stream_query;
    if (call.kind == Kind::copy && call.names_the_host() && call.stream >= 0) {
        const std::int16_t host = call.is_from_host() ? call.source : call.destination;
        const record::PinnedCopies::Copy copy{
            made.stream, member_at<std::uint64_t>(data.functionParams, host),
            std::uint64_t(member_at<std::size_t>(data.functionParams, call.count)) * call.element,
            records_.correlation_of(data.correlationId)};
        if (captures_.is_any_open() || !copies->contains(copy)) {
            return;
        }
        if (call.is_from_host()) {
            copies->copied(copy, moment);
        } else if (guard == nullptr) {
            copies->filled(copy);
        }
        if (guard != nullptr) {
            guard->protect(copy, call.is_from_host() ? AccessMode::read : AccessMode::write);
        }
        return;
    }
    if (is_query && guard != nullptr) {
        guard->lift_all();
    }
    if (!copies->has_pending()) {
        return;
    }
    if (call.kind == Kind::event_record || call.kind == Kind::event_destroy) {
        copies->followed(made);
    } else if (is_query) {
        copies->waits(
            {.kind = call.kind == Kind::event_query ? record::StreamCall::Kind::event_synchronize
                                                    : record::StreamCall::Kind::stream_synchronize,
             .stream = made.stream,
             .event = made.event},
            moment);
    }
}

record::StreamCalls* CuptiTracer::follower_of(const CUpti_CallbackData& data) {
    return data.context == nullptr ? nullptr : session_.stream_calls(device_of(data.context, 0));
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
                return streams_.created(data.context, device_of(data.context, 0),
                                        data.resourceHandle.stream);
            case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
                return streams_.destroyed(device_of(data.context, 0), data.resourceHandle.stream);
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
        const std::lock_guard lock(devices_mutex_);
        devices_[context] = int(device);
    }
    return int(device);
}

}  // namespace gpuviz::cupti
