#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <utility>

#include "bindings/bindings.hpp"
#include "record/clock.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using record::Session;

namespace {

// What a call of a function of gpuviz's returns; its exceptions must not reach the program.
template <typename Call>
nb::object quietly(Call&& call) {
    try {
        return call();
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("gpuviz");
        return nb::none();
    }
}

// A function that calls `enter` with its arguments, then `function` with them, and then, also after
// an exception, `leave` with what `enter` returned: without a frame of Python, which would be seen
// in the call stacks of what `function` does.
nb::object enclosed(nb::object function, nb::object enter, nb::object leave) {
    return nb::cpp_function(
        [function = std::move(function), enter = std::move(enter), leave = std::move(leave)](
            const nb::args& arguments, const nb::kwargs& options) {
            const nb::object entered = quietly([&] { return enter(*arguments, **options); });
            const auto left = [&] { quietly([&] { return leave(entered); }); };
            try {
                nb::object result = function(*arguments, **options);
                left();
                return result;
            } catch (nb::python_error&) {
                left();
                throw;
            }
        });
}

std::string_view text_of(const nb::bytes& name) { return {name.c_str(), name.size()}; }

std::uint32_t begin_range(Session& session, const nb::bytes& name, int kind) {
    return session.ranges().begin(text_of(name), record::RangeKind(kind));
}

void end_range(Session& session, std::uint32_t id) noexcept { session.ranges().end(id); }

void end_ranges(Session& session) noexcept { session.ranges().stop(); }

void add_stream_range(Session& session, const nb::bytes& name, int device, std::uint64_t handle,
                      std::int64_t time_ns, std::int64_t end_ns) {
    record::ActivityLog& log = session.log();
    record::ActivityRow row{};
    row.time = log.since_start(time_ns);
    row.end = log.since_start(end_ns);
    row.kind = record::ActivityKind::range;
    row.name = log.strings.intern(text_of(name));
    row.device = std::int16_t(device);
    row.stream = log.streams.by_handle(device, handle, row.time);
    log.activities.append(row);
}

std::uint32_t name_stream(Session& session, int device, std::uint64_t handle, std::string name) {
    record::ActivityLog& log = session.log();
    const std::int64_t now = session.since_start(record::now_ns());
    const std::uint32_t id = log.streams.by_handle(device, handle, now);
    log.streams.rename(id, std::move(name));
    return id;
}

}  // namespace

void bind_ranges(nb::module_& m) {
    m.def("begin_range", &begin_range, "session"_a, "name"_a, "kind"_a,
          "Return the id of a range around what the calling thread does from now on, 0 unless the "
          "session records; `name` is UTF-8, `kind` a number of DICTIONARIES.");
    m.def(
        "enclosed", &enclosed, "function"_a, "enter"_a, "leave"_a,
        "A function that calls `enter` with its arguments, then `function` with them, and then, "
        "also after an exception, `leave` with what `enter` returned, without a frame of Python.");
    m.def("end_range", &end_range, "session"_a, "id"_a,
          "End a range, from any thread; does nothing for 0 and for ranges that have ended.");
    m.def("end_ranges", &end_ranges, "session"_a,
          "End all open ranges; none begins until the session starts again.");
    m.def("add_stream_range", &add_stream_range, "session"_a, "name"_a, "device"_a, "handle"_a,
          "time_ns"_a, "end_ns"_a,
          "Add a range that was measured on a stream; times are those of time.monotonic_ns().");
    m.def("name_stream", &name_stream, "session"_a, "device"_a, "handle"_a, "name"_a,
          "Name the stream that has this handle now, and return its id.");
}

}  // namespace gpuviz::bindings
