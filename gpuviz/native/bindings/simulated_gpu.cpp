#include "simulation/simulated_gpu.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "allocator/host_allocator.hpp"
#include "bindings/bindings.hpp"
#include "bindings/track_uses.hpp"
#include "python/gil.hpp"
#include "record/thread_id.hpp"
#include "simulation/clocked_sink.hpp"
#include "simulation/scheduled_device.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using allocator::CachingAllocator;
using allocator::HostAllocator;
using device::EventHandle;
using device::StreamHandle;
using python::GilRelease;
using record::CallSite;
using simulation::ClockedSink;
using simulation::GpuKernel;
using simulation::SimulatedGpu;

namespace {

CallSite call_site(SimulatedGpu& gpu) {
    record::Session* session = gpu.session();
    if (session == nullptr) {
        return {.thread = record::current_thread_id()};
    }
    return session->call_site(true);
}

// Makes a call of the GPU without the GIL, with the caller's stack.
template <typename Make>
auto call(SimulatedGpu& gpu, Make&& make) {
    const CallSite site = call_site(gpu);
    const GilRelease unlocked;
    return make(site);
}

// Lets Ctrl-C end a wait. Not for calls of the allocator, under whose lock the GIL is out of reach.
void check_signals() {
    const python::GilAcquire acquire;
    if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
    }
}

// Gives what the allocator does a time of its own, between the calls before and after it.
class BetweenCalls {
  public:
    explicit BetweenCalls(SimulatedGpu& gpu) : clock_(gpu.clock()) { clock_.pass(half_ns); }
    BetweenCalls(const BetweenCalls&) = delete;
    BetweenCalls& operator=(const BetweenCalls&) = delete;
    ~BetweenCalls() { clock_.pass(half_ns); }

  private:
    static constexpr std::int64_t half_ns = 100;

    simulation::GpuClock& clock_;
};

std::uint64_t allocate(SimulatedGpu& gpu, CachingAllocator& allocator, std::uint64_t size,
                       StreamHandle stream) {
    const BetweenCalls between(gpu);
    return call(gpu, [&](const CallSite& site) { return allocator.allocate(size, stream, site); });
}

void free(SimulatedGpu& gpu, CachingAllocator& allocator, std::uint64_t address) {
    const BetweenCalls between(gpu);
    call(gpu, [&](const CallSite& site) { allocator.free(address, site); });
}

void empty_cache(SimulatedGpu& gpu, CachingAllocator& allocator) {
    call(gpu, [&](const CallSite& site) { allocator.empty_cache(site); });
}

std::unique_ptr<HostAllocator> make_host_allocator(SimulatedGpu& gpu, device::Device& device,
                                                   const allocator::Settings& settings) {
    return std::make_unique<HostAllocator>(device, settings, [&gpu] { return gpu.clock().now(); });
}

std::uint64_t allocate_host(SimulatedGpu& gpu, HostAllocator& allocator, std::uint64_t size) {
    const BetweenCalls between(gpu);
    return call(gpu, [&](const CallSite& site) { return allocator.allocate(size, site); });
}

void free_host(SimulatedGpu& gpu, HostAllocator& allocator, std::uint64_t address) {
    const BetweenCalls between(gpu);
    call(gpu, [&](const CallSite& site) { allocator.free(address, site); });
}

void bind_streams(nb::class_<SimulatedGpu>& gpu) {
    gpu.def(
           "create_stream",
           [](SimulatedGpu& self, bool non_blocking, int priority) {
               return call(self, [&](const CallSite& site) {
                   return self.create_stream(non_blocking, priority, site);
               });
           },
           "non_blocking"_a = false, "priority"_a = 0, "Return its handle.")
        .def(
            "destroy_stream",
            [](SimulatedGpu& self, StreamHandle stream) {
                call(self, [&](const CallSite& site) { self.destroy_stream(stream, site); });
            },
            "stream"_a)
        .def(
            "synchronize_stream",
            [](SimulatedGpu& self, StreamHandle stream) {
                call(self, [&](const CallSite& site) {
                    self.synchronize_stream(stream, site, check_signals);
                });
            },
            "stream"_a)
        .def("is_idle", &SimulatedGpu::is_idle, "stream"_a, nb::call_guard<GilRelease>())
        .def("synchronize_device", [](SimulatedGpu& self) {
            call(self, [&](const CallSite& site) { self.synchronize_device(site, check_signals); });
        });
}

void bind_events(nb::class_<SimulatedGpu>& gpu) {
    gpu.def(
           "create_event",
           [](SimulatedGpu& self) {
               return call(self, [&](const CallSite& site) { return self.create_event(site); });
           },
           "Return its handle.")
        .def(
            "destroy_event",
            [](SimulatedGpu& self, EventHandle event) {
                call(self, [&](const CallSite& site) { self.destroy_event(event, site); });
            },
            "event"_a)
        .def(
            "record_event",
            [](SimulatedGpu& self, EventHandle event, StreamHandle stream) {
                call(self, [&](const CallSite& site) { self.record_event(event, stream, site); });
            },
            "event"_a, "stream"_a)
        .def(
            "wait_event",
            [](SimulatedGpu& self, StreamHandle stream, EventHandle event) {
                call(self, [&](const CallSite& site) { self.wait_event(stream, event, site); });
            },
            "stream"_a, "event"_a)
        .def(
            "synchronize_event",
            [](SimulatedGpu& self, EventHandle event) {
                call(self, [&](const CallSite& site) {
                    self.synchronize_event(event, site, check_signals);
                });
            },
            "event"_a)
        .def("is_complete", &SimulatedGpu::is_complete, "event"_a, nb::call_guard<GilRelease>());
}

void bind_work(nb::class_<SimulatedGpu>& gpu) {
    gpu.def(
           "launch",
           [](SimulatedGpu& self, StreamHandle stream, const GpuKernel& kernel) {
               call(self, [&](const CallSite& site) { self.launch(stream, kernel, site); });
           },
           "stream"_a, "kernel"_a)
        .def(
            "begin_capture",
            [](SimulatedGpu& self, StreamHandle stream) {
                return call(self,
                            [&](const CallSite& site) { return self.begin_capture(stream, site); });
            },
            "stream"_a, "Return the number of a new capture.")
        .def(
            "capture",
            [](SimulatedGpu& self, std::uint32_t capture, const GpuKernel& kernel) {
                call(self, [&](const CallSite& site) { self.capture(capture, kernel, site); });
            },
            "capture"_a, "kernel"_a)
        .def("captured_addresses", &SimulatedGpu::captured_addresses, "capture"_a,
             nb::call_guard<GilRelease>(), "Return the addresses that the kernels use.")
        .def(
            "end_capture",
            [](SimulatedGpu& self, std::uint32_t capture) {
                return call(self,
                            [&](const CallSite& site) { return self.end_capture(capture, site); });
            },
            "capture"_a, "Return the number of a new graph, whose kernels run one after another.")
        .def(
            "destroy_graph",
            [](SimulatedGpu& self, std::uint32_t graph) {
                call(self, [&](const CallSite& site) { self.destroy_graph(graph, site); });
            },
            "graph"_a)
        .def(
            "launch_graph",
            [](SimulatedGpu& self, StreamHandle stream, std::uint32_t graph) {
                call(self, [&](const CallSite& site) { self.launch_graph(stream, graph, site); });
            },
            "stream"_a, "graph"_a)
        .def(
            "copy",
            [](SimulatedGpu& self, StreamHandle stream, int kind, std::uint64_t bytes,
               std::uint64_t source, std::uint64_t destination, bool pinned, bool blocking) {
                const simulation::GpuCopy copy{.kind = record::CopyKind(kind),
                                               .bytes = bytes,
                                               .source = source,
                                               .destination = destination,
                                               .pinned = pinned,
                                               .async = !blocking};
                call(self,
                     [&](const CallSite& site) { self.copy(stream, copy, site, check_signals); });
            },
            "stream"_a, "kind"_a, "bytes"_a, "source"_a = 0, "destination"_a = 0, "pinned"_a = true,
            "blocking"_a = false,
            "`kind` is a number of DICTIONARIES; a blocking copy is on the default stream.")
        .def(
            "fill",
            [](SimulatedGpu& self, StreamHandle stream, std::uint64_t address,
               std::uint64_t bytes) {
                call(self, [&](const CallSite& site) { self.fill(stream, address, bytes, site); });
            },
            "stream"_a, "address"_a, "bytes"_a);
}

}  // namespace

void bind_simulated_gpu(nb::module_& m) {
    nb::class_<SimulatedGpu> gpu(m, "SimulatedGpu",
                                 "A simulated GPU, at the level of CUDA's calls.");
    gpu.def(
           "__init__",
           [](SimulatedGpu* self, int device, bool real_time) {
               std::unique_ptr<simulation::GpuClock> clock;
               if (real_time) {
                   clock = std::make_unique<simulation::RealClock>();
               } else {
                   clock = std::make_unique<simulation::VirtualClock>();
               }
               new (self) SimulatedGpu(device, std::move(clock));
           },
           "device"_a = 0, nb::kw_only(), "real_time"_a = true,
           "Without `real_time`, only waits and calls advance the clock.")
        .def_ro_static("multiprocessors", &simulation::GpuSchedule::multiprocessors)
        .def(
            "attach",
            [](SimulatedGpu& self, record::Session& session, bool launch_sites, bool api_calls,
               bool graph_nodes) {
                self.attach(session, {.launch_sites = launch_sites,
                                      .api_calls = api_calls,
                                      .graph_nodes = graph_nodes});
            },
            "session"_a, nb::kw_only(), "launch_sites"_a = true, "api_calls"_a = false,
            "graph_nodes"_a = true, nb::call_guard<GilRelease>(),
            "Record into a running session, which must live until detach().")
        .def(
            "detach", [](SimulatedGpu& self) { self.detach(check_signals); },
            nb::call_guard<GilRelease>(), "Wait for pending GPU activities, and stop recording.")
        .def("pause", &SimulatedGpu::pause, nb::call_guard<GilRelease>(),
             "Record nothing until resume() but the end of work that was launched before.")
        .def("resume", &SimulatedGpu::resume, nb::call_guard<GilRelease>())
        .def_prop_ro("recorded_calls", &SimulatedGpu::recorded_calls,
                     "Rows of `api_calls` since attach().")
        .def("set_clock_of", &SimulatedGpu::set_clock_of, "session"_a,
             "Give ranges of a session this GPU's times, until stop_clock_of().")
        .def("stop_clock_of", &SimulatedGpu::stop_clock_of, "session"_a,
             "Give ranges of a session the time of now from now on.")
        .def("abandon", &SimulatedGpu::abandon,
             "From now on, release memory without waiting for the GPU.")
        .def("abandon_recording", &SimulatedGpu::abandon_recording,
             "In the child after fork(): record nothing from now on, and wait for nothing.")
        .def_prop_ro(
            "now_ns", [](SimulatedGpu& self) { return self.clock().now(); },
            "Now, in ns, on CLOCK_MONOTONIC or the virtual clock.")
        .def(
            "wait_until",
            [](SimulatedGpu& self, std::int64_t time_ns) { self.clock().wait_until(time_ns); },
            "time_ns"_a, nb::call_guard<GilRelease>(),
            "Let the host be busy with something else until then.")
        .def("allocate", &allocate, "allocator"_a, "size"_a, "stream"_a,
             "Return the address of at least `size` bytes for use on `stream`; 0 for size 0.")
        .def("free", &free, "allocator"_a, "address"_a)
        .def("empty_cache", &empty_cache, "allocator"_a)
        .def("host_allocator", &make_host_allocator, "device"_a, "settings"_a,
             nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
             "Return a new allocator of pinned memory, on the GPU's clock.")
        .def("allocate_host", &allocate_host, "allocator"_a, "size"_a,
             "Return the address of at least `size` bytes of pinned memory; 0 for size 0.")
        .def("free_host", &free_host, "allocator"_a, "address"_a)
        .def(
            "track_uses",
            [](SimulatedGpu& self, CachingAllocator& allocator, record::Session& session,
               const std::string& record_stream, bool poison) {
                track_uses(allocator, session, record_stream, poison,
                           [&self] { return self.clock().now(); });
            },
            "allocator"_a, "session"_a, "record_stream"_a, "poison"_a = false,
            "Like CachingAllocator.track_uses, on the GPU's clock.");
    bind_streams(gpu);
    bind_events(gpu);
    bind_work(gpu);

    nb::class_<simulation::ScheduledDevice, device::SimulatedDevice>(
        m, "ScheduledDevice", "The memory of a SimulatedGpu, for a CachingAllocator.")
        .def(nb::init<SimulatedGpu&, std::uint64_t>(), "gpu"_a, "capacity"_a,
             nb::keep_alive<1, 2>());
    nb::class_<ClockedSink, record::MemoryEventSink>(
        m, "ClockedSink", "Passes events on, with times of a SimulatedGpu's clock.")
        .def(
            "__init__",
            [](ClockedSink* self, SimulatedGpu& gpu, record::MemoryEventSink& sink) {
                new (self) ClockedSink(gpu.clock(), sink);
            },
            "gpu"_a, "sink"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

}  // namespace gpuviz::bindings
