#include "record/names.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "record/code_origin.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

std::vector<std::string> number_alike(const Column<std::int16_t>& devices,
                                      std::vector<std::string> names) {
    if (devices.shape(0) != names.size()) {
        throw std::invalid_argument("devices and names differ in number");
    }
    record::number_alike({devices.data(), devices.shape(0)}, names);
    return names;
}

record::Framework framework_of(std::string_view word) {
    const auto known = std::ranges::find(record::framework_names, word);
    if (known == record::framework_names.end()) return record::Framework::none;
    return record::Framework(known - record::framework_names.begin());
}

}  // namespace

void bind_names(nb::module_& m) {
    m.def(
        "stream_kind", [](std::uint64_t handle) { return int(record::stream_kind(handle)); },
        "handle"_a, "Return the kind of a stream, as far as its handle determines it.");
    m.def("stream_name", &record::stream_name, "handle"_a,
          "Return a name for the stream with this handle.");
    m.def("own_name", &record::own_name, "number"_a, "handle"_a,
          "Return the name of a stream that the program has not named.");
    m.def("number_alike", &number_alike, "devices"_a, "names"_a,
          "Return the names, of which those that a device has several times are numbered.");
    m.def(
        "pool_name",
        [](std::uint32_t owner, std::string_view segment_type, std::string_view framework) {
            return record::pool_name(owner, segment_type, framework_of(framework));
        },
        "owner"_a, "segment_type"_a, "framework"_a,
        "Return what a reader calls a pool, given its row in `pools`.");
    m.def(
        "code_origin",
        [](nb::bytes name) { return int(record::code_origin({name.c_str(), name.size()})); },
        "filename"_a, "Return whose code a file has, as in `frames.installed`.");
    m.def(
        "user_frame",
        [](const std::vector<std::uint32_t>& frames, const std::vector<std::uint8_t>& origins) {
            if (frames.size() != origins.size()) {
                throw std::invalid_argument("frames and origins differ in number");
            }
            std::size_t place = 0;
            // It asks for the origin of each frame but 0, in order.
            return record::user_frame(frames, [&](std::uint32_t frame) {
                while (frames[place] != frame) ++place;
                return static_cast<record::CodeOrigin>(origins[place]);
            });
        },
        "frames"_a, "origins"_a, "Return the innermost frame of the program's own files.");
}

}  // namespace gpuviz::bindings
