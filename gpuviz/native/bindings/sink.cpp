#include "bindings/bindings.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::bindings {

void bind_sink(nanobind::module_& m) {
    using record::Framework;
    nanobind::enum_<Framework>(m, "Framework", "Whose memory it is.")
        .value("none", Framework::none)
        .value("cupy", Framework::cupy)
        .value("torch", Framework::torch)
        .value("numba", Framework::numba)
        .value("cuda_core", Framework::cuda_core)
        .value("rmm", Framework::rmm)
        .value("jax", Framework::jax);
    nanobind::class_<record::MemoryEventSink>(m, "MemoryEventSink",
                                              "Receives the events of an allocator.");
}

}  // namespace gpuviz::bindings
