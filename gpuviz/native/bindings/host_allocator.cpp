#include "allocator/host_allocator.hpp"

#include <memory>

#include "bindings/bindings.hpp"
#include "python/allocator_values.hpp"
#include "python/gil.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using allocator::HostAllocator;
using python::GilRelease;

namespace {

// Held until the next session: kept alive as long as the allocator, every session would stay.
constexpr const char* held_session = "_session";

void record_into(nb::handle_t<HostAllocator> self, nb::handle_t<record::Session> session) {
    auto& allocator = nb::cast<HostAllocator&>(self);
    record::ActivityLog& log = nb::cast<record::Session&>(session).log();
    {
        const GilRelease unlocked;
        allocator.record_into(log);
    }
    self.attr(held_session) = session;
}

void stop_recording(nb::handle_t<HostAllocator> self) {
    auto& allocator = nb::cast<HostAllocator&>(self);
    {
        const GilRelease unlocked;
        allocator.stop_recording();
    }
    self.attr(held_session) = nb::none();
}

// The caller's, if a session records.
record::CallSite call_site(nb::handle self) {
    const nb::object held = nb::getattr(self, held_session, nb::none());
    if (held.is_none()) {
        return {};
    }
    auto& session = nb::cast<record::Session&>(held);
    return session.call_site(true);
}

void empty_cache(nb::handle_t<HostAllocator> self) {
    const record::CallSite site = call_site(self);
    auto& allocator = nb::cast<HostAllocator&>(self);
    const GilRelease unlocked;
    allocator.empty_cache(site);
}

}  // namespace

void bind_host_allocator(nb::module_& m) {
    nb::class_<HostAllocator>(m, "HostAllocator", nb::is_weak_referenceable(), nb::dynamic_attr(),
                              "torch's caching allocator of pinned host memory.")
        .def(nb::init<device::Device&, const allocator::Settings&>(), "device"_a,
             "settings"_a = allocator::Settings{}, nb::keep_alive<1, 2>())
        .def(
            "allocate", [](HostAllocator& self, std::uint64_t size) { return self.allocate(size); },
            "size"_a, nb::call_guard<GilRelease>(),
            "Return the address of at least `size` bytes; 0 for size 0.\n\nRaises:\n    "
            "MemoryError: The driver has no more pinned memory.")
        .def(
            "free", [](HostAllocator& self, device::Address address) { self.free(address); },
            "address"_a, nb::call_guard<GilRelease>(),
            "Free an allocated block, which is reused once its uses are done.")
        .def("record_event", &HostAllocator::record_event, "address"_a, "device"_a, "stream"_a,
             nb::keep_alive<1, 3>(), nb::call_guard<GilRelease>(),
             "Note that work of a stream uses the block around an address; False: there is none.")
        .def("add_device", &HostAllocator::add_device, "device"_a, nb::keep_alive<1, 2>(),
             nb::call_guard<GilRelease>(), "Make the copies of another device known.")
        .def(
            "follow_copies",
            [](HostAllocator& self, record::Session& session) { session.set_pinned_uses(&self); },
            "session"_a, nb::keep_alive<2, 1>(),
            "Note the copies that the session's tracer sees as uses of their blocks.")
        .def("record_into", &record_into, "session"_a,
             "Write the existing memory and, until `stop_recording`, every event into the session.")
        .def("stop_recording", &stop_recording)
        .def("end_stream", &HostAllocator::end_stream, "device"_a, "stream"_a,
             nb::call_guard<GilRelease>(), "Call it before the stream is destroyed.")
        .def("empty_cache", &empty_cache,
             "Return all cached blocks to the driver, recorded with the caller's stack.")
        .def("apply_settings", &HostAllocator::apply_settings, "settings"_a,
             nb::call_guard<GilRelease>())
        .def(
            "memory_stats",
            [](const HostAllocator& self) {
                const auto statistics = [&] {
                    const GilRelease unlocked;
                    return self.statistics();
                };
                return python::to_python(statistics());
            },
            nb::sig("def memory_stats(self) -> dict[str, int]"),
            "Return every value of torch.cuda.host_memory_stats, by its key.")
        .def("reset_peak_stats", &HostAllocator::reset_peak_stats, nb::call_guard<GilRelease>())
        .def("reset_accumulated_stats", &HostAllocator::reset_accumulated_stats,
             nb::call_guard<GilRelease>());
}

}  // namespace gpuviz::bindings
