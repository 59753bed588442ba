#pragma once

#include <cupti.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::cupti {

// A driver call that may get a row in `api_calls`, and the offsets in bytes of its parameters in
// CUPTI's structure; -1 for parameters that it lacks.
struct CuptiCall {
    enum class Kind : std::uint8_t {
        other,
        launch,
        launch_ex,
        copy,  // or memset, which has no source
        host_function,
        event_create,
        event_query,
        stream_query,
        event_record,
        stream_wait_event,
        event_synchronize,
        event_destroy,
        stream_synchronize,
        stream_destroy,
        device_synchronize,
        capture_begin,
        capture_end,
        graph_instantiation,
        graph_launch,
        graph_destruction,
        graph_change,
    };

    const char* name = nullptr;  // in CUPTI, for example cuMemcpyHtoDAsync_v2_ptsz
    Kind kind = Kind::other;
    bool is_traced = false;      // even if not all calls are recorded
    bool is_per_thread = false;  // stream 0 is the per-thread default stream
    std::int16_t stream = -1;
    std::int16_t destination = -1;
    std::int16_t source = -1;
    std::int16_t count = -1;  // of the elements that are copied or set
    std::int16_t event = -1;
    std::int16_t flags = -1;   // of a record
    std::uint8_t element = 1;  // bytes
    bool has_extra = false;    // of a launch: its parameters may be packed instead

    [[nodiscard]] bool names_the_host() const noexcept {
        const std::string_view text(name);
        return text.find("HtoD") != text.npos || text.find("DtoH") != text.npos;
    }
    [[nodiscard]] bool is_from_host() const noexcept {
        return std::string_view(name).find("HtoD") != std::string_view::npos;
    }
    [[nodiscard]] bool is_to_host() const noexcept {
        return std::string_view(name).find("DtoH") != std::string_view::npos;
    }
    // Whether the call copies and may do so between two devices: its copy can then run in a stream
    // that the driver made for itself.
    [[nodiscard]] bool may_be_between_devices() const noexcept {
        return kind == Kind::copy && source >= 0 && !names_the_host();
    }
    // Whether the row of the call names its stream, which no activity tells.
    [[nodiscard]] bool names_stream_in_row() const noexcept {
        return may_be_between_devices() || kind == Kind::host_function;
    }
    // Whether the stream may capture after the call, although it did not before.
    [[nodiscard]] bool may_join_capture() const noexcept {
        return kind == Kind::capture_begin || kind == Kind::stream_wait_event;
    }
    // Whether the call matters for graphs, although it may get no row.
    [[nodiscard]] bool is_about_graphs() const noexcept { return kind >= Kind::capture_begin; }
    // Whether the call enqueues work on a stream.
    [[nodiscard]] bool is_work() const noexcept {
        return kind == Kind::launch || kind == Kind::launch_ex || kind == Kind::copy ||
               kind == Kind::host_function || kind == Kind::graph_launch ||
               kind == Kind::capture_begin || (kind == Kind::other && stream >= 0);
    }
    // Whether the call orders streams or the host.
    [[nodiscard]] bool is_about_order() const noexcept {
        return kind >= Kind::event_record && kind <= Kind::device_synchronize;
    }
    // Whether the call waits, asks whether a wait is over, or concerns an event.
    [[nodiscard]] bool is_about_waits() const noexcept {
        return (kind >= Kind::event_create && kind <= Kind::device_synchronize &&
                kind != Kind::stream_destroy) ||
               event >= 0;
    }
};

// The driver calls of a library, indexed by callback id.
[[nodiscard]] std::vector<CuptiCall> driver_calls(const CuptiLibrary& library);

}  // namespace gpuviz::cupti
