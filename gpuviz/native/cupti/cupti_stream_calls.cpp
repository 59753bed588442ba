#include "cupti/cupti_stream_calls.hpp"

#include "cupti/cupti_parameters.hpp"
#include "cupti/cupti_streams.hpp"

namespace gpuviz::cupti {

namespace {

record::StreamCall::Kind stream_call_kind_of(const CuptiCall& call) {
    using Kind = CuptiCall::Kind;
    using Follow = record::StreamCall::Kind;
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
}

}  // namespace

record::StreamCall stream_call_of(const CuptiCall& call, const void* parameters) {
    record::StreamCall followed{.kind = stream_call_kind_of(call)};
    if (call.stream >= 0 || call.kind == CuptiCall::Kind::launch_ex) {
        followed.stream = handle_of(named_stream_of(call, parameters));
    } else if (call.is_per_thread) {
        followed.stream = handle_of(CU_STREAM_PER_THREAD);  // of a synchronous copy
    }
    if (call.event >= 0) {
        followed.event = member_at<std::uint64_t>(parameters, call.event);
    }
    return followed;
}

}  // namespace gpuviz::cupti
