#include "bindings/bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The native core of gpuviz: devices, the caching allocator, recording and replay.";
    nb::set_leak_warnings(false);  // allocators live for ever on purpose
    gpuviz::bindings::bind_device(m);
    gpuviz::bindings::bind_cuda(m);
    gpuviz::bindings::bind_sink(m);
    gpuviz::bindings::bind_record(m);
    gpuviz::bindings::bind_cupti(m);
    gpuviz::bindings::bind_ranges(m);
    gpuviz::bindings::bind_names(m);
    gpuviz::bindings::bind_nccl(m);
    gpuviz::bindings::bind_nvtx(m);
    gpuviz::bindings::bind_out_of_memory(m);
    gpuviz::bindings::bind_allocator_settings(m);
    gpuviz::bindings::bind_allocator(m);
    gpuviz::bindings::bind_host_allocator(m);
    gpuviz::bindings::bind_memory_state(m);
    gpuviz::bindings::bind_overlap(m);
    gpuviz::bindings::bind_event_follower(m);
    gpuviz::bindings::bind_busy_times(m);
    gpuviz::bindings::bind_groups(m);
    gpuviz::bindings::bind_places(m);
    gpuviz::bindings::bind_packing(m);
    gpuviz::bindings::bind_hazards(m);
    gpuviz::bindings::bind_replay(m);
    gpuviz::bindings::bind_shared_pool(m);
    gpuviz::bindings::bind_lent_stack(m);
    gpuviz::bindings::bind_pinned_observer(m);
    gpuviz::bindings::bind_library_observer(m);
    gpuviz::bindings::bind_cupy_allocator(m);
    gpuviz::bindings::bind_cupy_observer(m);
    gpuviz::bindings::bind_pinned_allocator(m);
    gpuviz::bindings::bind_gpu_kernel(m);
    gpuviz::bindings::bind_simulated_gpu(m);
    gpuviz::bindings::bind_trace(m);
    gpuviz::bindings::bind_torch_observer(m);
    gpuviz::bindings::bind_torch_snapshot(m);
    gpuviz::bindings::bind_torch_writer(m);
    gpuviz::bindings::bind_holders(m);
    gpuviz::bindings::bind_objects(m);
}
