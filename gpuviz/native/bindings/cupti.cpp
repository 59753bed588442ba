#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "cupti/array_extents.hpp"
#include "cupti/cupti_calibration.hpp"
#include "cupti/cupti_tracer.hpp"
#include "cupti/kernel_signature.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using cupti::CuptiTracer;

namespace {

void make_tracer(CuptiTracer* place, const std::string& library, record::Session& session,
                 bool launch_sites, bool stacks, bool api_calls, bool follow_streams,
                 bool graph_nodes) {
    new (place) CuptiTracer(cupti::CuptiLibrary::open(library), session,
                            {.launch_sites = launch_sites,
                             .stacks = stacks,
                             .api_calls = api_calls,
                             .follows_streams = follow_streams,
                             .graph_nodes = graph_nodes});
}

void declare_numbered_modes(const std::string& symbol, const std::vector<int>& numbers) {
    std::vector<record::AccessMode> modes;
    for (const int number : numbers) {
        if (number < 0 || number > int(record::AccessMode::read_write)) {
            throw nb::value_error("an access mode is a number from 0 to 3");
        }
        modes.push_back(record::AccessMode(number));
    }
    cupti::declare_modes(symbol, std::move(modes));
}

// A function that calls `first` with its arguments, and then `then` with the result and them,
// without a frame of Python: it must not be seen in the call stacks of what `first` does.
// Exceptions of `then` are ignored.
nb::object followed(nb::object first, nb::object then) {
    return nb::cpp_function([first = std::move(first), then = std::move(then)](
                                const nb::args& arguments, const nb::kwargs& options) {
        nb::object result = first(*arguments, **options);
        try {
            then(result, *arguments, **options);
        } catch (nb::python_error& error) {
            error.discard_as_unraisable("gpuviz");
        }
        return result;
    });
}

}  // namespace

void bind_cupti(nb::module_& m) {
    const auto unlocked = nb::call_guard<python::GilRelease>();
    m.def("declare_kernel_modes", &declare_numbered_modes, "symbol"_a, "modes"_a,
          "Declare the access modes of a kernel's leading parameters, as numbers in the order of "
          "`launch_blocks`.");
    m.def("declare_array_elements", &cupti::declare_array_elements, "function"_a, "symbol"_a,
          "elements"_a,
          "Declare of which leading parameters a function, a CUfunction, accesses all elements: "
          "their size in bytes; 0 for other parameters.");
    m.def("followed", &followed, "first"_a, "then"_a,
          "A function that calls `first`, and then `then` with the result and the arguments, and "
          "returns the result, without a frame of Python.");
    nb::class_<cupti::CalibrationCalls>(
        m, "CalibrationCalls",
        "Calls of the driver of several kinds, to measure how long they take.")
        .def(nb::init<>(), unlocked,
             "Raise RuntimeError if this thread has no CUDA context, or if the driver refuses.")
        .def(
            "make",
            [](const cupti::CalibrationCalls& calls, int kind) {
                calls.make(cupti::CalibrationCalls::Kind(kind));
            },
            "kind"_a, unlocked,
            "Make one call of a kind, by its position in what measure() returns.")
        .def(
            "measure", &cupti::CalibrationCalls::measure, "calls"_a, unlocked,
            "Return the median time in ns of a call of each kind, of so many in a row: a launch, a "
            "copy to the device, one to the host that waits, an event record, a query, a wait of "
            "a stream for an event, a synchronization, a launch of a graph of `graph_nodes`.")
        .def("time_graph", &cupti::CalibrationCalls::time_graph, "launches"_a, unlocked,
             "Return the median time in ns that the GPU takes for a graph of `long_graph_nodes` "
             "kernels which follow each other, of so many launches.")
        .def_prop_ro_static(
            "graph_nodes", [](nb::handle) { return cupti::CalibrationCalls::graph_nodes; },
            "The kernels of the graph.")
        .def_prop_ro_static(
            "long_graph_nodes",
            [](nb::handle) { return cupti::CalibrationCalls::long_graph_nodes; },
            "The kernels of the graph whose time on the GPU is measured.");
    nb::class_<CuptiTracer>(m, "CuptiTracer",
                            "Records the GPU activities of this process into a session.")
        .def("__init__", &make_tracer, "library"_a, "session"_a, nb::keep_alive<1, 3>(),
             nb::kw_only(), "launch_sites"_a = true, "stacks"_a = true, "api_calls"_a = false,
             "follow_streams"_a = false, "graph_nodes"_a = true,
             "`library` is the path of libcupti. Raises RuntimeError if it cannot be used.")
        .def("start", &CuptiTracer::start, unlocked,
             "Raise RuntimeError, with what stands in the way, or record from now on.")
        .def("stop", &CuptiTracer::stop, unlocked,
             "Wait until everything that the GPU has completed is in the log.")
        .def("pause", &CuptiTracer::pause, unlocked,
             "Detach until start() is called again; return when the last call can have been "
             "recorded, in ns on CLOCK_MONOTONIC.")
        .def("flush", &CuptiTracer::flush, unlocked, "Move completed records to the log now.")
        .def("abandon_after_fork", &CuptiTracer::abandon_after_fork)
        .def_prop_ro("launches", &CuptiTracer::launches, "Launches seen by callbacks.")
        .def_prop_ro("records", &CuptiTracer::records, "Records delivered by CUPTI.")
        .def_prop_ro("calls", &CuptiTracer::calls, "Rows of `api_calls`.")
        .def_prop_ro("other_calls", &CuptiTracer::other_calls,
                     "Calls that were followed and have no row of `api_calls`.")
        .def_prop_ro("own_ns", &CuptiTracer::own_ns, "How long gpuviz worked in these calls.")
        .def_prop_ro("attach_ns", &CuptiTracer::attach_ns,
                     "How long CUPTI attached and detached, in ns.")
        .def_prop_ro("reads_arguments", &CuptiTracer::reads_arguments,
                     "Whether the driver reports the parameters of kernels.")
        .def_prop_ro("unreadable_launches", &CuptiTracer::unreadable_launches,
                     "Launches whose parameters could not be read.");
}

}  // namespace gpuviz::bindings
