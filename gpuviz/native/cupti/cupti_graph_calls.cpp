#include <vector>

#include "cupti/cupti_parameters.hpp"
#include "cupti/cupti_tracer.hpp"

// What the callbacks do for captures and graphs.
namespace gpuviz::cupti {

void CuptiTracer::on_graph_call(const CuptiCall& call, const CUpti_CallbackData& data) {
    const void* const parameters = data.functionParams;
    const bool is_success = has_succeeded(data);
    switch (call.kind) {
        case CuptiCall::Kind::capture_begin:
            return is_success ? captures_.began() : void();
        case CuptiCall::Kind::capture_end:
            return captures_.ended();
        case CuptiCall::Kind::graph_instantiation: {
            // All versions begin with the same members.
            const auto& made = *static_cast<const cuGraphInstantiateWithFlags_params*>(parameters);
            return is_success ? captures_.instantiated(made.hGraph, *made.phGraphExec) : void();
        }
        case CuptiCall::Kind::graph_destruction:
            return captures_.destroyed(
                static_cast<const cuGraphDestroy_params*>(parameters)->hGraph);
        case CuptiCall::Kind::graph_change:
            builds_graphs_.store(true, std::memory_order_relaxed);
            for (const std::uint64_t event : captures_.changed()) {
                waits_.events().recorded_elsewhere(event);
            }
            // Calls for nodes of any kind do not say at a known place which event a node records.
            return waits_.events().may_be_recorded_elsewhere();
        case CuptiCall::Kind::graph_launch:
            return is_success ? on_graph_records(call, data) : void();
        default:
            return;
    }
}

// The events that a graph records when it runs.
void CuptiTracer::on_graph_records(const CuptiCall& call, const CUpti_CallbackData& data) {
    const auto& launch = *static_cast<const cuGraphLaunch_params*>(data.functionParams);
    const std::vector<std::uint64_t> events = captures_.events_of(launch.hGraph);
    const CUstream stream = named_stream_of(call, data.functionParams);
    if (events.empty() || (captures_.is_any_open() && captures_.captured(stream, false) != 0)) {
        return;
    }
    const CuptiStreams::Used used = stream_used(call, data);
    for (const std::uint64_t event : events) {
        waits_.recorded(event, {.owner = {used.context, used.device},
                                .stream = used.id,
                                .correlation = records_.correlation_of(data.correlationId)});
    }
}

void CuptiTracer::on_captured_call(const CuptiCall& call, const CUpti_CallbackData& data,
                                   std::uint32_t stream, bool is_known_node) {
    using Kind = CuptiCall::Kind;
    using record::GraphCallKind;
    const bool has_stream = call.stream >= 0 || call.kind == Kind::launch_ex;
    const std::uint32_t capture =
        has_stream ? captures_.captured(named_stream_of(call, data.functionParams), is_known_node)
                   : 0;
    GraphCallKind kind = GraphCallKind::kernel;
    if (call.kind == Kind::event_record) {
        kind = GraphCallKind::event_record;
    } else if (call.kind == Kind::stream_wait_event) {
        kind = GraphCallKind::stream_wait_event;
    } else if (call.kind == Kind::copy) {
        kind = call.source < 0 ? GraphCallKind::memset : GraphCallKind::memcpy;
    } else if (!is_known_node) {
        return;
    }
    if (capture == 0) {
        return;
    }
    record::ActivityLog& log = session_.log();
    const bool is_kernel = kind == GraphCallKind::kernel;
    log.graph_calls.append(
        {.correlation = records_.correlation_of(data.correlationId),
         .kind = kind,
         .name = is_kernel ? log.strings.intern_symbol(data.symbolName) : 0,
         .stream = stream,
         .capture = capture,
         .graph = 0,
         .event = call.event < 0 ? 0 : member_at<std::uint64_t>(data.functionParams, call.event)});
}

void CuptiTracer::on_graph_launch(const CUpti_CallbackData& data, CUstream stream,
                                  std::uint32_t stream_id) {
    const auto& launch = *static_cast<const cuGraphLaunch_params*>(data.functionParams);
    const CapturedGraph graph = captures_.graph_of(launch.hGraph);
    if (captures_.is_any_open() && captures_.captured(stream, false) != 0) {
        return;
    }
    session_.log().graph_calls.append({.correlation = records_.correlation_of(data.correlationId),
                                       .kind = record::GraphCallKind::launch,
                                       .name = 0,
                                       .stream = stream_id,
                                       .capture = graph.capture,
                                       .graph = graph.number,
                                       .event = 0});
}

// Whether the record of an event became part of a capture instead.
bool CuptiTracer::is_captured_record(const CuptiCall& call, const CUpti_CallbackData& data) {
    const bool is_for_graph =
        call.flags >= 0 &&
        (member_at<unsigned>(data.functionParams, call.flags) & CU_EVENT_RECORD_EXTERNAL) != 0;
    const auto event = member_at<std::uint64_t>(data.functionParams, call.event);
    const CUstream stream = named_stream_of(call, data.functionParams);
    if (is_for_graph) {
        waits_.events().may_be_recorded_elsewhere();  // a copy of the graph is not followed
        return captures_.records_event(stream, event);
    }
    if (!captures_.is_any_open() || captures_.captured(stream, false) == 0) {
        return false;
    }
    waits_.events().captured(event);
    return true;
}

}  // namespace gpuviz::cupti
