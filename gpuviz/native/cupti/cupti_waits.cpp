#include "cupti/cupti_waits.hpp"

#include "cupti/cupti_parameters.hpp"

namespace gpuviz::cupti {

using record::SynchronizationKind;
using record::SynchronizationRow;

namespace {

using Kind = CuptiCall::Kind;

// The record that the calling thread's current wait refers to. A call that begins later may record
// the event again, which the wait does not wait for.
thread_local EventRecords::Record awaited;

SynchronizationRow row_of(const record::ActivityLog& log, SynchronizationKind kind,
                          const CuptiWaits::Made& made) {
    return {.time = log.since_start(made.began_ns),
            .end = log.since_start(made.ended_ns),
            .kind = kind,
            .device = std::int16_t(made.owner.device),
            .context = made.owner.context,
            .stream = made.stream,
            .event = 0,
            .event_sync_id = 0,
            .correlation = made.correlation};
}

}  // namespace

void CuptiWaits::enter(const CuptiCall& call, const void* parameters) {
    awaited = {};
    if (call.event < 0 || call.kind == Kind::event_record) {
        return;
    }
    const auto event = member_at<std::uint64_t>(parameters, call.event);
    switch (call.kind) {
        case Kind::stream_wait_event:
        case Kind::event_synchronize:
        case Kind::event_query:
            awaited = events_.last(event);
            return;
        case Kind::event_destroy:
            // Afterwards another thread may get the handle for a new event.
            return events_.destroyed(event);
        default:
            return events_.recorded_elsewhere(event);
    }
}

void CuptiWaits::succeeded(const CuptiCall& call, const Made& made) {
    const auto add = [&](SynchronizationKind kind) {
        if (awaited.is_empty) {
            return;
        }
        SynchronizationRow row = row_of(log_, kind, made);
        row.event = awaited.event;
        row.event_sync_id = awaited.sync_id;
        if (kind == SynchronizationKind::event_synchronize && awaited.owner.context != 0) {
            row.device = std::int16_t(awaited.owner.device);  // whichever is the thread's
            row.context = awaited.owner.context;
        }
        log_.synchronizations.append(row);
    };
    switch (call.kind) {
        case Kind::stream_wait_event:
            return add(SynchronizationKind::stream_wait_event);
        case Kind::event_synchronize:
        case Kind::event_query:
            return add(SynchronizationKind::event_synchronize);
        case Kind::stream_synchronize:
        case Kind::stream_query:
            return add(SynchronizationKind::stream_synchronize);
        case Kind::device_synchronize:
            return add(SynchronizationKind::context_synchronize);
        default:
            return;
    }
}

void CuptiWaits::created(std::uint64_t event, unsigned flags) {
    if ((flags & CU_EVENT_INTERPROCESS) == 0) {
        events_.created(event);
    }
}

void CuptiWaits::launched(const CUlaunchConfig& config) {
    for (unsigned each = 0; each < config.numAttrs; ++each) {
        const CUlaunchAttribute& attribute = config.attrs[each];
        CUevent event = nullptr;
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
            event = attribute.value.programmaticEvent.event;
        } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
            event = attribute.value.launchCompletionEvent.event;
        }
        if (event != nullptr) {
            events_.recorded_elsewhere(reinterpret_cast<std::uint64_t>(event));
        }
    }
}

void CuptiWaits::recorded(std::uint64_t event, const Made& made) {
    const EventRecords::Record record = events_.recorded(event, made.owner);
    SynchronizationRow row = row_of(log_, SynchronizationKind::event_record, made);
    row.time = row.end = 0;  // the GPU's, which is not known
    row.event = record.event;
    row.event_sync_id = record.sync_id;
    log_.synchronizations.append(row);
}

}  // namespace gpuviz::cupti
