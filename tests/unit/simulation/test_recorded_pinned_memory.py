import os

import pytest

import gpuviz

MIB = 1 << 20


def rows_of(recording):
    rows = recording.table("host_memory_events").to_pylist()
    return [(row["action"], row["size"] // MIB, row["requested_size"] // MIB) for row in rows]


def test_a_block_is_recorded_from_the_driver_to_its_reuse(recorded):
    def program(gpu):
        staging = gpu.empty_pinned(3 * MIB)
        del staging
        gpu.empty_pinned(4 * MIB)

    recording = recorded(program)

    assert rows_of(recording) == [
        ("segment_alloc", 4, 0),
        ("alloc", 4, 3),
        ("free_requested", 4, 3),
        ("free_completed", 4, 3),
        ("alloc", 4, 4),
        ("free_requested", 4, 4),
        ("free_completed", 4, 4),
    ]


def test_a_free_is_completed_when_the_copy_is_done(recorded):
    def program(gpu):
        array, staging = gpu.empty(8 * MIB), gpu.empty_pinned(8 * MIB)
        with gpu.Stream(non_blocking=True) as stream:
            gpu.launch("spin", duration=1.0)
            gpu.copy_to_device(array, host=staging)
        del staging
        stream.synchronize()
        gpu.empty_pinned(MIB)

    recording = recorded(program)

    rows = recording.table("host_memory_events").to_pylist()
    freed = [row for row in rows if row["size"] == 8 * MIB and row["action"].startswith("free")]
    assert [row["action"] for row in freed] == ["free_requested", "free_completed"]
    assert freed[1]["time"] - freed[0]["time"] > 5e6


def test_a_refusal_is_recorded_with_what_was_released_before(recorded):
    def program(gpu):
        gpu.empty_pinned(MIB)
        gpu._allocator.device.refuse_host_beyond(MIB)
        with pytest.raises(MemoryError):
            gpu.empty_pinned(2 * MIB)

    recording = recorded(program)

    assert rows_of(recording)[-2:] == [("segment_free", 1, 0), ("oom", 2, 2)]


def test_the_release_of_cached_memory_has_its_line(recorded):
    def program(gpu):
        gpu.empty_pinned(MIB)
        gpu._host_allocator.empty_cache()

    recording = recorded(program)

    last = recording.table("host_memory_events").to_pylist()[-1]
    _, source = recording.call_stacks.call_site(last["stack"])
    assert (last["action"], source) == ("segment_free", "gpu._host_allocator.empty_cache()")


def test_memory_from_before_the_recording_is_its_initial_state(gpu, recorded):
    kept, freed = gpu.empty_pinned(MIB), gpu.empty_pinned(2 * MIB)
    array, copied = gpu.empty(4 * MIB), gpu.empty_pinned(4 * MIB)
    with gpu.Stream(non_blocking=True):
        gpu.launch("spin", duration=1.0)
        gpu.copy_to_device(array, host=copied)
    del freed, copied

    memory = recorded(lambda gpu: gpu.empty_pinned(8 * MIB)).host_memory

    first = memory.memory_levels.slice(0, 1).to_pylist()[0]
    assert first == {
        "time": 0,
        "requested": 5 * MIB,
        "allocated": MIB,
        "active": 5 * MIB,
        "reserved": 7 * MIB,
    }
    assert memory.events == 4
    assert kept.nbytes == MIB


def test_nothing_is_recorded_after_the_recording(gpu, recorded):
    recording = recorded(lambda gpu: gpu.empty_pinned(MIB))
    gpu.empty_pinned(2 * MIB)

    assert recording.host_memory.peak().bytes == MIB


def test_the_peak_has_the_lines_that_allocated_it(recorded):
    def program(gpu):
        kept = [gpu.empty_pinned(MIB) for _ in range(3)]
        gpu.empty_pinned(2 * MIB)
        return kept

    memory = recorded(program).host_memory

    assert (memory.peak().bytes, memory.peak().reserved_bytes) == (5 * MIB, 5 * MIB)
    lines = memory.sites("line").to_pylist()
    assert [(row["source"], row["live_bytes"]) for row in lines] == [
        ("kept = [gpu.empty_pinned(MIB) for _ in range(3)]", 3 * MIB),
        ("gpu.empty_pinned(2 * MIB)", 2 * MIB),
    ]


def test_what_is_about_the_memory_of_devices_is_the_same_with_pinned_memory():
    def program(gpu, *, pinned):
        first = gpu.empty(8 * MIB)
        staging = gpu.empty_pinned(64 * MIB) if pinned else None
        second = gpu.empty(4 * MIB)
        del first, second, staging

    def about_devices(*, pinned):
        gpu = gpuviz.SimulatedGPU(1 << 30, real_time=False)
        with gpuviz.record(device=gpu) as recorder:
            program(gpu, pinned=pinned)
        recording = recorder.recording
        snapshot = recording.memory_snapshot("peak")
        for segment in snapshot:
            segment.pop("frames")
            for block in segment["blocks"]:
                block.pop("frames")
        levels = recording.memory_levels.drop(["time"]).to_pylist()
        what_if = recording.what_if("").drop(["driver_ns"]).to_pylist()
        sites = recording.sites("line").select(["source", "live_bytes", "total_bytes"]).to_pylist()
        findings = [finding.rule for finding in recording.findings(small=True)]
        stats = recording.memory_stats()
        return recording.peak().bytes, levels, stats, snapshot, sites, findings, what_if

    assert about_devices(pinned=True) == about_devices(pinned=False)


def test_a_window_begins_with_the_state_at_its_start(recorded):
    def program(gpu):
        kept = gpu.empty_pinned(MIB)
        gpu.work_on_host(1e-3)
        freed = gpu.empty_pinned(2 * MIB)
        gpu.work_on_host(1e-3)
        del freed
        return kept

    recording = recorded(program)
    part = recording.window(1_500_000, recording.duration_ns)

    assert part.host_memory.events == 4
    assert part.host_memory.peak().bytes == 3 * MIB
    assert part.host_memory.sites("line")["source"].to_pylist() == [
        "freed = gpu.empty_pinned(2 * MIB)",
        "kept = gpu.empty_pinned(MIB)",
    ]


def test_a_saved_recording_has_the_same(recorded, tmp_path):
    recording = recorded(lambda gpu: gpu.empty_pinned(3 * MIB))

    loaded = gpuviz.load(recording.save(tmp_path / "a.gpuviz")).host_memory

    assert loaded.memory_levels.equals(recording.host_memory.memory_levels)
    assert loaded.sites().equals(recording.host_memory.sites())


def test_without_pinned_memory_there_is_none(recorded):
    memory = recorded(lambda gpu: gpu.empty(MIB)).host_memory

    assert not memory.is_recorded
    assert (memory.peak().bytes, memory.memory_levels.num_rows, memory.sites().num_rows) == (
        0,
        0,
        0,
    )


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_uses_its_copy_without_recording():
    gpu = gpuviz.SimulatedGPU(1 << 30)
    with gpuviz.record(device=gpu) as recorder:
        kept = gpu.empty_pinned(MIB)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                del kept
                gpu.empty_pinned(2 * MIB)
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    assert recorder.recording.host_memory.peak().bytes == MIB
    assert kept.nbytes == MIB
