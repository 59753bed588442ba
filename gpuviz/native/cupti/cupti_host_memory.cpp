#include "cupti/cupti_host_memory.hpp"

#include <array>
#include <exception>
#include <span>

#include "cupti/cupti_parameters.hpp"
#include "cupti/cupti_stream_calls.hpp"
#include "record/page_guard.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::cupti {

using record::AccessMode;
using record::PinnedCopies;

void CuptiHostMemory::note_accesses(std::int64_t now_ns) noexcept {
    PinnedCopies* const copies = session_.pinned_copies();
    if (copies != nullptr && copies->is_watching() && copies->is_accessed()) {
        copies->accessed({now_ns, {session_.capture_stack(), record::current_thread_id()}});
    }
}

// Once the program knows that a copy has ended, the host does what it likes.
void CuptiHostMemory::enter_wait(const CuptiCall& call, const CUpti_CallbackData& data) noexcept {
    using Kind = CuptiCall::Kind;
    const bool is_synchronous = call.kind == Kind::copy && call.stream < 0;
    if (call.kind != Kind::event_synchronize && call.kind != Kind::stream_synchronize &&
        call.kind != Kind::device_synchronize && !is_synchronous) {
        return;
    }
    if (record::PageGuard* const guard = session_.page_guard()) {
        guard->lift_all();
    }
    PinnedCopies* const copies = session_.pinned_copies();
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

void CuptiHostMemory::note_call(const CuptiCall& call, const CUpti_CallbackData& data,
                                std::int64_t began_ns, std::uint32_t stack) noexcept {
    using Kind = CuptiCall::Kind;
    PinnedCopies* const copies = session_.pinned_copies();
    if (copies == nullptr) {
        return;
    }
    if (call.kind == Kind::copy && copies->is_watching()) {
        copies->pass_over();  // the driver may read small sources itself
    }
    if (!has_succeeded(data)) {
        return;
    }
    const PinnedCopies::Moment moment{began_ns,
                                      {.stack = stack, .thread = record::current_thread_id()}};
    const record::StreamCall made = stream_call_of(call, data.functionParams);
    if (call.kind == Kind::copy && call.names_the_host() && call.stream >= 0) {
        return note_copy(call, data, made, moment);
    }
    const bool is_query = call.kind == Kind::event_query || call.kind == Kind::stream_query;
    record::PageGuard* const guard = session_.page_guard();
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

void CuptiHostMemory::note_copy(const CuptiCall& call, const CUpti_CallbackData& data,
                                const record::StreamCall& made,
                                const PinnedCopies::Moment& moment) noexcept {
    PinnedCopies& copies = *session_.pinned_copies();
    record::PageGuard* const guard = session_.page_guard();
    const std::int16_t host = call.is_from_host() ? call.source : call.destination;
    const PinnedCopies::Copy copy{
        made.stream, member_at<std::uint64_t>(data.functionParams, host),
        std::uint64_t(member_at<std::size_t>(data.functionParams, call.count)) * call.element,
        records_.correlation_of(data.correlationId)};
    if (captures_.is_any_open() || !copies.contains(copy)) {
        return;
    }
    if (call.is_from_host()) {
        copies.copied(copy, moment);
    } else if (guard == nullptr) {
        copies.filled(copy);
    }
    if (guard != nullptr) {
        guard->protect(copy, call.is_from_host() ? AccessMode::read : AccessMode::write);
    }
}

// A synchronous copy is done when its call returns.
void CuptiHostMemory::note_pinned_copy(const CuptiCall& call,
                                       const CUpti_CallbackData& data) noexcept {
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
        pinned->used(devices_.of(data.context, data.contextUid),
                     stream_call_of(call, data.functionParams).stream,
                     std::span(addresses).first(count));
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

}  // namespace gpuviz::cupti
