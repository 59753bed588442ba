#include "analysis/event_follower.hpp"

#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using analysis::EventFollower;

namespace {

void add(EventFollower& follower, const Columns& columns) {
    analysis::EventRows events;
    ColumnViews views(columns);
    views.take("time", events.time)
        .take("action", events.action)
        .take("address", events.address)
        .take("size", events.size)
        .take("requested_size", events.requested_size)
        .take("device", events.device);
    const python::GilRelease unlocked;
    follower.add(events);
}

Columns blocks(const EventFollower& follower, const Column<std::uint64_t>& address,
               const Column<std::int64_t>& time) {
    if (address.shape(0) != time.shape(0)) {
        throw std::invalid_argument("addresses and times differ in number");
    }
    std::vector<std::int16_t> device;
    std::vector<std::int32_t> event;
    {
        const python::GilRelease unlocked;
        for (std::size_t row = 0; row < address.shape(0); ++row) {
            const auto found = follower.block(address.data()[row], time.data()[row]);
            device.push_back(found.device);
            event.push_back(found.event);
        }
    }
    Columns columns;
    columns["device"] = to_numpy(std::move(device));
    columns["event"] = to_numpy(std::move(event));
    return columns;
}

Columns take_marks(EventFollower& follower, bool is_whole) {
    std::vector<std::int16_t> device;
    std::vector<std::int32_t> event;
    std::vector<std::uint8_t> kind;
    std::vector<std::int64_t> bytes;
    for (const analysis::Mark& mark : follower.take_marks(is_whole)) {
        device.push_back(mark.device);
        event.push_back(mark.event);
        kind.push_back(std::uint8_t(mark.kind));
        bytes.push_back(mark.bytes);
    }
    Columns columns;
    columns["device"] = to_numpy(std::move(device));
    columns["event"] = to_numpy(std::move(event));
    columns["kind"] = to_numpy(std::move(kind));
    columns["bytes"] = to_numpy(std::move(bytes));
    return columns;
}

}  // namespace

void bind_event_follower(nb::module_& m) {
    nb::class_<EventFollower>(m, "EventFollower",
                              "Which blocks addresses were in, and marks of memory events.")
        .def(
            "__init__",
            [](EventFollower* self, const std::optional<Column<std::uint64_t>>& followed) {
                if (followed) {
                    new (self) EventFollower(std::span(followed->data(), followed->shape(0)));
                } else {
                    new (self) EventFollower();
                }
            },
            "followed"_a = nb::none(), "Only followed addresses can be found, if given.")
        .def("add", &add, "events"_a, "Add columns of memory_events, in order.")
        .def("blocks", &blocks, "address"_a, "time"_a,
             "Return device and event of the allocation of the block at each address and time.")
        .def("take_marks", &take_marks, "is_whole"_a,
             "Return columns of memory_marks since the last call.");
}

}  // namespace gpuviz::bindings
