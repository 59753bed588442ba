#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "allocator/settings.hpp"
#include "allocator/size_classes.hpp"
#include "bindings/bindings.hpp"
#include "python/allocator_values.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using allocator::Settings;

void bind_allocator_settings(nb::module_& m) {
    nb::class_<Settings>(m, "AllocatorSettings",
                         "The allocator's settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF.")
        .def_static(
            "parse", [](const std::string& text) { return Settings{}.parse(text); }, "text"_a,
            "Return the settings that `text` names over the defaults.\n\nRaises:\n    ValueError: "
            "An unknown key or a bad value; the message names it.")
        .def("updated", &Settings::parse, "text"_a,
             "Return these settings with `text` applied as torch applies it at run time.")
        .def(
            "segment_size",
            [](const Settings& settings, std::uint64_t size) {
                return allocator::segment_size(size, settings.large_segment_size);
            },
            "size"_a, "Return the size of the segment that serves a request of rounded size.")
        .def_ro("text", &Settings::text)
        .def_ro("expandable_segments", &Settings::expandable_segments)
        .def_ro("garbage_collection_threshold", &Settings::garbage_collection_threshold)
        .def_prop_ro(
            "max_split_size",
            [](const Settings& settings) {
                return static_cast<std::int64_t>(settings.max_split_size);
            },
            "Bytes; -1: unlimited.")
        .def_ro("max_non_split_rounding_size", &Settings::max_non_split_rounding_size)
        .def_ro("large_segment_size", &Settings::large_segment_size)
        .def_ro("pinned_max_round_threshold", &Settings::pinned_max_round_threshold)
        .def_ro("pinned_max_cached_size", &Settings::pinned_max_cached_size)
        .def_ro("per_process_memory_fraction", &Settings::per_process_memory_fraction)
        .def_prop_ro("roundup_power2_divisions", &python::divisions_by_megabytes,
                     nb::sig("def roundup_power2_divisions(self) -> dict[str, int]"),
                     "Divisions by interval, as torch prints them: {'1': 0, '2': 0, ...}.");
}

}  // namespace gpuviz::bindings
