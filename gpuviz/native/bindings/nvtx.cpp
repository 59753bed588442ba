#include "activity/nvtx.hpp"

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz {

void bind_nvtx(nb::module_& m) {
    m.def(
        "record_nvtx", [](Session& session) { record_nvtx(session.ranges()); }, "session"_a,
        "Send NVTX ranges to a session, which must live until ignore_nvtx().");
    m.def("ignore_nvtx", &ignore_nvtx, nb::call_guard<GilRelease>(),
          "Send NVTX ranges nowhere; returns when no thread is within the session for them.");
    m.def("abandon_nvtx_after_fork", &abandon_nvtx_after_fork,
          "The same in the child after fork(), where it waits for nothing.");
}

}  // namespace gpuviz
