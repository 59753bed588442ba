#include "nvtx/nvtx.hpp"

#include <memory>

#include "allocator/caching_allocator.hpp"
#include "bindings/bindings.hpp"
#include "nvtx/memory_announcer.hpp"
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
    m.def(
        "announce_memory",
        [](allocator::CachingAllocator& allocator) {
            const nvtx::MemoryTool* tool = nvtx::MemoryTool::find();
            if (tool != nullptr) {
                allocator.set_relay(std::make_unique<nvtx::MemoryAnnouncer>(*tool));
            }
            return tool != nullptr;
        },
        "allocator"_a,
        "Announce the segments and blocks of a new allocator to the NVTX tool of this process, "
        "for good.\n\nReturns False if there is no tool for memory.");
}

}  // namespace gpuviz::bindings
