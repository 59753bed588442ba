#include "nccl/nccl.hpp"

#include "bindings/bindings.hpp"
#include "python/gil.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

void bind_nccl(nb::module_& m) {
    m.def("record_nccl", &nccl::record_nccl, "session"_a,
          "Send the collectives of NCCL to a session, which must live until ignore_nccl().");
    m.def("ignore_nccl", &nccl::ignore_nccl, nb::call_guard<python::GilRelease>(),
          "Send collectives nowhere; returns when no thread is within the session for them.");
    m.def("abandon_nccl_after_fork", &nccl::abandon_nccl_after_fork,
          "Do the same in the child process after fork(), without waiting.");
}

}  // namespace gpuviz::bindings
