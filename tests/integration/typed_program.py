"""A program that uses every public name, with the type that it expects of each.

`test_types.py` checks it with mypy and runs the part that needs no GPU.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import gpuviz
from gpuviz import Recorder, Recording, SimulatedGPU
from gpuviz.errors import FormatError, GpuvizError, RecorderError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

MIB = 1 << 20


def use(*_values: object) -> None:
    """Take values of any type."""


gpu = SimulatedGPU(memory=1024 * MIB, settings="expandable_segments:True", real_time=False)


@gpuviz.range("step")
def step(number: int, *, scale: float = 1.0) -> list[str]:
    x = gpu.empty(number * MIB)
    y = gpu.empty(number * MIB)
    host = gpu.empty_pinned(number * MIB)
    stream = gpu.Stream(non_blocking=True, priority=-1)
    other: gpuviz.SimulatedGPU = gpu
    gpuviz.name_stream(stream.ptr, "copies", device=0)
    with stream:
        gpu.copy_to_device(x, host=host)
        gpu.launch("k", duration=1e-4 * scale, reads=[x], writes=[y])
        event = gpu.Event()
        event.record(stream)
    gpu.null_stream.wait_event(event)
    gpu.current_stream.synchronize()
    gpu.fill(x)
    gpu.copy(x, y)
    gpu.copy_to_host(y, blocking=True)
    gpu.work_on_host(1e-3)
    gpu.record_stream(x, stream)
    gpu.synchronize()
    gpu.empty_cache()
    gpu.compile("k", duration=1e-3)
    assert_type(x.nbytes, int)
    assert_type(gpu.memory_stats(), dict[str, int])
    assert_type(gpu.host_memory_stats(), dict[str, int])
    del other
    return ["done"]


def record(path: Path) -> Recording:
    with gpuviz.record(path, device=gpu, overwrite=True, hazards=True, budget=None) as recorder:
        assert_type(recorder, Recorder)
        with gpuviz.range("outer"):
            result = step(4, scale=2.0)
            assert_type(result, list[str])
        status = recorder.status()
        assert_type(status, gpuviz.RecorderStatus)
        assert_type(status.events + status.activities + status.dropped, int)
        assert_type(status.notes, tuple[str, ...])
        assert_type(recorder.is_recording, bool)
    assert_type(recorder.recording, Recording)
    started = gpuviz.record(device=gpu)
    started.start()
    use(gpuviz.leaks().num_rows)
    assert_type(started.stop(), Recording)
    assert_type(Recorder.active(), Recorder | None)
    assert_type(recorder.out_of_memory_pages, tuple[Path, ...])
    return recorder.recording


def tables(recording: Recording) -> None:
    for table in (
        recording.collectives(),
        recording.compilations(),
        recording.copies(by="line"),
        recording.default_stream_work(),
        recording.delayed_frees(),
        recording.graph_pools(),
        recording.hidden_collectives(),
        recording.host_work(),
        recording.iterations(),
        recording.kernels(by="module"),
        recording.leaks(),
        recording.lines(),
        recording.memory_levels,
        recording.modules(),
        recording.other_memory(by="time"),
        recording.peak_chain(),
        recording.sites("line", at="end"),
        recording.synchronizations(by="stack"),
        recording.table("activities"),
        recording.what_if(["expandable_segments:True"], capacity=1 << 30),
        recording.writes_after_free(),
        recording.derived["peer_copies"],
    ):
        shown: pa.Table = table
        use(shown.num_rows)


def values(recording: Recording) -> None:
    peak = recording.peak()
    assert_type(peak.bytes, int)
    assert_type(peak.time_ns, int)
    use(peak.device)
    overlap = recording.overlap(start=0, end=1_000_000)
    for lane in overlap.devices:
        assert_type(lane.busy, float)
        assert_type(lane.kernel_copy_ns / 2, float)
        assert_type(lane.start, int)
    for stream in overlap.streams:
        assert_type(stream.idle_host_ns, int)
    steady = recording.steady_state()
    if steady is not None:
        assert_type(steady.busy_ns, int)
    for finding in recording.findings(small=True):
        assert_type(finding.rule, str)
        assert_type(finding.title, str)
        assert_type(finding.saved_bytes, int)
        assert_type(finding.saved_ns, int)
        assert_type(finding.change, str)
        use(finding.certainty, finding.evidence)
    for hazard in recording.hazards():
        assert_type(hazard.fix, str)
        use(hazard.tier, hazard.first.site, hazard.second.site)


def facts(recording: Recording, folder: Path) -> None:
    fragmentation = recording.fragmentation(at="peak")
    use(fragmentation)
    packing = recording.packing(seconds=0.1)
    assert_type(packing.lower_bound, int)
    assert_type(packing.upper_bound, int)
    assert_type(packing.is_optimal, bool)
    use(packing.blocks, packing.load_blocks)
    assert_type(recording.memory_stats(), dict[str, int])
    assert_type(recording.memory_snapshot(at=5), list[dict[str, Any]])
    assert_type(recording.window(0, 10), Recording)
    assert_type(recording.compensated(), Recording)
    cost = recording.recording_cost()
    if cost is not None:
        use(cost)
    memory = recording.host_memory
    assert_type(memory.peak().bytes, int)
    use(memory.sites("line").num_rows, memory.memory_levels.num_rows)
    for failure in recording.out_of_memory():
        use(failure)
    for link in recording.device_links:
        assert_type(link.text, str)
    for process in recording.processes:
        assert_type(process.name, str)
        assert_type(process.recording, Recording)
        use(process.devices)
    assert_type(recording.notes, tuple[str, ...])
    assert_type(recording.duration_ns, int)
    assert_type(recording.is_complete, bool)
    assert_type(recording.dropped, int)
    assert_type(recording.time_range, tuple[int, int])
    assert_type(recording.bounds, tuple[int, int] | None)
    use(recording.devices, recording.covered_ns)
    assert_type(recording.report(folder / "run.html", overwrite=True, redact=True), Path)
    assert_type(recording.save(str(folder / "again.gpuviz"), overwrite=True), Path)
    assert_type(recording.export(folder / "run.pftrace", overwrite=True), Path)


def compare(before: Recording, after: Path) -> None:
    found = gpuviz.diff(before, after)
    assert_type(found, gpuviz.Diff)
    assert_type(found.before, Recording)
    for table in (found.waterfall, found.totals, found.kernels, found.modules, found.copies):
        use(table.num_rows)
    for table in (found.waits, found.idle, found.settings, found.quantities):
        use(table.num_rows)
    assert_type(found.notes, tuple[str, ...])
    assert_type(found.is_empty, bool)
    for finding in found.findings:
        assert_type(finding.title, str)
    use(found.devices)
    assert_type(found.report("diff.html", overwrite=True), Path)
    assert_type(gpuviz.merge([before, after]), Recording)
    assert_type(gpuviz.replay(before, settings="cupy", capacity=1 << 30), Recording)


def load(path: str) -> Recording | None:
    try:
        return gpuviz.load(path, max_bytes=1 << 30)
    except FormatError as error:
        use(error)
    except (RecorderError, GpuvizError):
        return None
    return None


def memory() -> None:
    assert_type(gpuviz.memory_allocated(), int)
    assert_type(gpuviz.max_memory_allocated(0), int)
    assert_type(gpuviz.memory_reserved(), int)
    assert_type(gpuviz.max_memory_reserved(), int)
    assert_type(gpuviz.mem_get_info(), tuple[int, int])
    assert_type(gpuviz.list_gpu_processes(), str)
    assert_type(gpuviz.memory_stats(), dict[str, int])
    assert_type(gpuviz.memory_stats_as_nested_dict()["allocated_bytes"], Any)
    assert_type(gpuviz.memory_summary(abbreviated=True), str)
    assert_type(gpuviz.memory_snapshot(), list[dict[str, Any]])
    gpuviz.reset_peak_memory_stats()
    gpuviz.reset_accumulated_memory_stats()
    gpuviz.set_per_process_memory_fraction(0.5, 0)
    assert_type(gpuviz.get_per_process_memory_fraction(), float)
    gpuviz.set_allocator_settings("max_split_size_mb:512")
    assert_type(gpuviz.get_allocator_settings(), str)
    gpuviz.empty_cache()
    address = gpuviz.caching_allocator_alloc(1024, stream=0)
    assert_type(address, int)
    gpuviz.caching_allocator_delete(address)
    gpuviz.empty_host_cache()
    assert_type(gpuviz.host_memory_stats(), dict[str, int])
    use(gpuviz.host_memory_stats_as_nested_dict())
    gpuviz.reset_peak_host_memory_stats()
    gpuviz.reset_accumulated_host_memory_stats()
    pool = gpuviz.MemPool(use_on_oom=True)
    with gpuviz.use_mem_pool(pool):
        use(pool.id, pool.snapshot())
    with gpuviz.graph(None) as graph:
        pass
    graph.replay()
    assert_type(graph.replays, int)
    assert_type(graph.held_bytes, int)
    use(graph.pool.snapshot())
    use(gpuviz.malloc(1), gpuviz.malloc_pinned(1))


def held() -> None:
    found = gpuviz.holders(64 << 20, most=10)
    assert_type(found.used, int)
    for block in found.blocks:
        use(block.size, block.only, block.holders)
    for each in found.releases:
        assert_type(gpuviz.release(each), int)
    assert_type(gpuviz.release("Out[4]"), int)


def install() -> None:
    gpuviz.allocators.cupy.install()
    gpuviz.allocators.torch.install()
    gpuviz.allocators.numba.install()
    gpuviz.allocators.rmm.install()
    gpuviz.allocators.cuda_core.install()
    assert_type(gpuviz.allocators.cupy.is_installed(), bool)
    gpuviz.allocators.cupy.uninstall()
    use(gpuviz.allocators.cuda_core.memory_resource(0))


def cluster() -> None:
    with gpuviz.dask.record("run", workers=["a"]) as recorded:
        pass
    assert_type(recorded.recording, Recording)
    use(recorded.paths, recorded.problems, gpuviz.dask.fetch("run"))


def shown(recording: Recording) -> None:
    use(gpuviz.dashboard(recording), gpuviz.dashboard(), gpuviz.__version__)


if __name__ == "__main__":
    place = Path()
    made = record(place / "run.gpuviz")
    tables(made)
    values(made)
    facts(made, place)
    compare(made, place / "again.gpuviz")
    loaded = load("run.gpuviz")
    if loaded is not None:
        sys.exit(repr(gpuviz.diff(made, loaded)))
