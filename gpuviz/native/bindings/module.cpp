#include "bindings/bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The native core of gpuviz: devices, the caching allocator, recording and replay.";
    nb::set_leak_warnings(false);  // allocators live for ever on purpose
    gpuviz::bind_device(m);
    gpuviz::bind_cuda(m);
    gpuviz::bind_sink(m);
    gpuviz::bind_record(m);
    gpuviz::bind_cupti(m);
    gpuviz::bind_ranges(m);
    gpuviz::bind_nvtx(m);
    gpuviz::bind_allocator(m);
    gpuviz::bind_memory_state(m);
    gpuviz::bind_overlap(m);
    gpuviz::bind_replay(m);
    gpuviz::bind_cupy_allocator(m);
    gpuviz::bind_cupy_observer(m);
    gpuviz::bind_simulated_gpu(m);
    gpuviz::bind_trace(m);
}
