#pragma once

#include <nanobind/nanobind.h>

// One function for each file of this folder; module.cpp calls them in the order of the layers.
namespace gpuviz::bindings {

void bind_device(nanobind::module_& m);
void bind_cupti(nanobind::module_& m);
void bind_cuda(nanobind::module_& m);
void bind_event_follower(nanobind::module_& m);
void bind_sink(nanobind::module_& m);
void bind_record(nanobind::module_& m);
void bind_ranges(nanobind::module_& m);
void bind_names(nanobind::module_& m);
void bind_nccl(nanobind::module_& m);
void bind_nvtx(nanobind::module_& m);
void bind_out_of_memory(nanobind::module_& m);
void bind_allocator_settings(nanobind::module_& m);
void bind_allocator(nanobind::module_& m);
void bind_host_allocator(nanobind::module_& m);
void bind_pinned_allocator(nanobind::module_& m);
void bind_memory_state(nanobind::module_& m);
void bind_overlap(nanobind::module_& m);
void bind_busy_times(nanobind::module_& m);
void bind_groups(nanobind::module_& m);
void bind_places(nanobind::module_& m);
void bind_packing(nanobind::module_& m);
void bind_hazards(nanobind::module_& m);
void bind_replay(nanobind::module_& m);
void bind_shared_pool(nanobind::module_& m);
void bind_lent_stack(nanobind::module_& m);
void bind_pinned_observer(nanobind::module_& m);
void bind_library_observer(nanobind::module_& m);
void bind_cupy_allocator(nanobind::module_& m);
void bind_cupy_observer(nanobind::module_& m);
void bind_gpu_kernel(nanobind::module_& m);
void bind_simulated_gpu(nanobind::module_& m);
void bind_trace(nanobind::module_& m);
void bind_torch_observer(nanobind::module_& m);
void bind_torch_snapshot(nanobind::module_& m);
void bind_torch_writer(nanobind::module_& m);
void bind_holders(nanobind::module_& m);
void bind_objects(nanobind::module_& m);

}  // namespace gpuviz::bindings
