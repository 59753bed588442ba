#include "nvtx/nvtx.hpp"

#include "bindings/bindings.hpp"
#include "python/gil.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_nvtx(nb::module_& m) {
    m.def(
        "record_nvtx", [](record::Session& session) { nvtx::record_nvtx(session.ranges()); },
        "session"_a, "Send NVTX ranges to a session, which must live until ignore_nvtx().");
    m.def("ignore_nvtx", &nvtx::ignore_nvtx, nb::call_guard<python::GilRelease>(),
          "Send NVTX ranges nowhere; returns when no thread is within the session for them.");
    m.def("abandon_nvtx_after_fork", &nvtx::abandon_nvtx_after_fork,
          "Do the same in the child process after fork(), without waiting.");
}

}  // namespace gpuviz::bindings
