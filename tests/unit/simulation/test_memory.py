import pytest

import gpuviz
from gpuviz import _core
from tests.unit.simulation.tables_of import activities, calls, kernels, named

MIB = 1 << 20


def modes(recording, correlation):
    return {
        row["block"]: row["mode"]
        for row in recording.table("launch_blocks").to_pylist()
        if row["correlation"] == correlation
    }


def test_work_touches_the_blocks_that_it_reads_and_writes(recorded):
    blocks = {}

    def program(gpu):
        x, y, z = gpu.empty(1000), gpu.empty(5 * MIB), gpu.empty(5 * MIB)
        blocks.update(x=x.ptr, y=y.ptr, z=z.ptr)
        gpu.launch("k", reads=[x, y], writes=[y, z], duration=1e-6)
        gpu.copy(y, z)
        gpu.copy_to_host(z)
        gpu.copy_to_device(y)
        gpu.fill(x)

    recording = recorded(program)

    by_kind = {row["kind"] + row["copy_kind"]: row for row in activities(recording)}
    touched = {kind: modes(recording, row["correlation"]) for kind, row in by_kind.items()}
    assert touched == {
        "kernel": {blocks["x"]: "read", blocks["y"]: "read_write", blocks["z"]: "write"},
        "memcpydevice_to_device": {blocks["y"]: "read", blocks["z"]: "write"},
        "memcpydevice_to_host": {blocks["z"]: "read"},
        "memcpyhost_to_device": {blocks["y"]: "write"},
        "memset": {blocks["x"]: "write"},
    }


def test_a_function_of_cupy_receives_what_it_updates_twice(recorded):
    def program(gpu):
        x, y = gpu.empty(512), gpu.empty(512)
        name = "cupy_add__float32_float32_float32"
        gpu.launch(name, reads=[x, y], writes=[x], duration=1e-6)

    rows = recorded(program).table("launch_blocks").to_pylist()

    assert [row["mode"] for row in rows] == ["read", "read", "write"]
    assert rows[0]["address"] == rows[2]["address"] != rows[1]["address"]


def test_launches_with_equal_scalars_have_equal_contents(recorded):
    unknown = "cupy_add__float32_float_float32"

    def program(gpu):
        x = gpu.empty(512)
        for name, scalars in [("k", None), ("k", []), ("k", [1]), ("k", [1.0]), (unknown, None)]:
            gpu.launch(name, reads=[x], scalars=scalars, duration=1e-6)

    none, empty, one, same, unknown_one = recorded(program).table("launch_blocks")["content"]

    assert none == empty != one == same
    assert [each.as_py() > 0 for each in (none, one, unknown_one)] == [True, True, False]


def test_an_address_that_is_used_again_belongs_to_the_block_of_the_moment(recorded):
    addresses = []

    def program(gpu):
        for _ in range(3):
            x = gpu.empty(3 * MIB)
            addresses.append(x.ptr)
            gpu.launch("k", writes=[x], duration=1e-6)
            del x

    recording = recorded(program)

    assert len(set(addresses)) == 1
    rows = recording.table("launch_blocks").to_pylist()
    assert [row["block"] for row in rows] == addresses
    assert [row["correlation"] for row in rows] == [
        row["correlation"] for row in calls(recording, "cuLaunchKernel")
    ]


def test_arrays_from_before_the_recording_are_touched_too(gpu):
    x = gpu.empty(3 * MIB)

    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("k", reads=[x], duration=1e-6)

    [row] = recorder.recording.table("launch_blocks").to_pylist()
    assert (row["block"], row["mode"]) == (x.ptr, "read")
    assert recorder.recording.manifest.initial_events == 2
    assert [event["time"] for event in recorder.recording.table("memory_events").to_pylist()] == [
        0
    ] * 2


def test_segments_are_memory_operations_of_the_calls_that_made_them(recorded):
    def program(gpu):
        x = gpu.empty(30 * MIB)
        gpu.launch("k", writes=[x], duration=5e-3)
        del x
        gpu.empty_cache()

    recording = recorded(program)

    rows = recording.table("memory_operations").to_pylist()
    [allocated], [freed] = calls(recording, "cuMemAlloc_v2"), calls(recording, "cuMemFree_v2")
    assert [(row["operation"], row["bytes"], row["correlation"]) for row in rows] == [
        ("allocation", 30 * MIB, allocated["correlation"]),
        ("release", 30 * MIB, freed["correlation"]),
    ]
    assert rows[0]["address"] == rows[1]["address"]
    events = recording.table("memory_events").to_pylist()
    assert [row["action"] for row in events][:2] == ["segment_alloc", "alloc"]
    assert allocated["end"] - allocated["time"] >= 50_000
    assert kernels(recording)["k"]["end"] <= freed["end"]


def test_a_call_of_empty_cache_is_an_event_with_its_line_and_what_it_gave_back(recorded, tmp_path):
    def program(gpu):
        kept = gpu.empty(30 * MIB)
        gpu.empty(40 * MIB)
        with gpuviz.range("tidy"):
            gpu.empty_cache()
        del kept

    recording = gpuviz.load(recorded(program).save(tmp_path / "run.gpuviz"))

    rows = recording.table("memory_events").to_pylist()
    [row] = [row for row in rows if row["action"] == "empty_cache"]
    frame = recording.call_stacks.user_frame(row["stack"])
    [tidy] = recording.table("ranges").to_pylist()
    assert rows[rows.index(row) - 1]["action"] == "segment_free"
    assert (row["size"], row["requested_size"], row["address"]) == (40 * MIB, 0, 0)
    assert (frame.name[-7:], frame.source) == ("program", "gpu.empty_cache()")
    assert row["range"] == tidy["id"]
    assert row["thread"] == rows[0]["thread"]


def test_expandable_segments_are_mapped_and_unmapped():
    gpu = gpuviz.SimulatedGPU(1 << 30, settings="expandable_segments:True", real_time=False)

    with gpuviz.record(device=gpu) as recorder:
        x = gpu.empty(30 * MIB)
        del x
        gpu.empty_cache()

    names = [row["name"] for row in named(recorder.recording, "api_calls")]
    assert names.count("cuMemMap") == names.count("cuMemUnmap") == 1
    assert recorder.recording.manifest.settings == "expandable_segments:True"


def test_memory_that_another_stream_uses_is_free_when_that_stream_has_passed(recorded):
    def program(gpu):
        other = gpu.Stream(non_blocking=True)
        x = gpu.empty(3 * MIB)
        address = x.ptr
        with other:
            gpu.launch("long", reads=[x], duration=5e-3)
        gpu.record_stream(x, other)
        del x
        y = gpu.empty(3 * MIB)
        assert y.ptr != address
        gpu.synchronize()
        assert gpu.empty(3 * MIB).ptr == address

    recording = recorded(program)

    events = recording.table("memory_events").to_pylist()
    [used] = [row for row in events if row["action"] == "record_stream"]
    completed = next(row for row in events if row["action"] == "free_completed")
    assert completed["address"] == used["address"]
    assert completed["time"] >= kernels(recording)["long"]["end"]
    assert used["stream"] == kernels(recording)["long"]["stream"]


def test_memory_that_a_destroyed_stream_used_is_freed_all_the_same(gpu):
    x = gpu.empty(3 * MIB)
    address = x.ptr
    stream = gpu.Stream(non_blocking=True)
    with stream:
        gpu.launch("long", reads=[x], duration=5e-3)
    gpu.record_stream(x, stream)
    del stream, x

    gpu.synchronize()

    assert gpu.empty(3 * MIB).ptr == address


def test_expandable_segments_of_a_destroyed_stream_are_given_back():
    gpu = gpuviz.SimulatedGPU(1 << 30, settings="expandable_segments:True", real_time=False)
    with gpu.Stream(non_blocking=True):
        x = gpu.empty(30 * MIB)
        gpu.launch("k", writes=[x], duration=1e-3)
    del x

    gpu.empty_cache()

    assert gpu.memory_stats()["reserved_bytes.all.current"] == 0


@pytest.mark.parametrize("is_destroyed", [True, False])
def test_a_stream_with_the_handle_of_a_destroyed_one_goes_on_with_its_segment(is_destroyed):
    gpu = gpuviz.SimulatedGPU(
        memory=100 * MIB, settings="expandable_segments:True", real_time=False
    )
    with gpuviz.record(device=gpu) as recorder:
        first = gpu.Stream()
        with first:
            a = gpu.empty(12 * MIB)
        if is_destroyed:
            del first
        second = gpu.Stream()
        with second:
            b = gpu.empty(12 * MIB)
    recording = recorder.recording

    events = recording.table("memory_events").to_pylist()
    assert len({row["stream"] for row in events if row["action"] == "segment_map"}) == 2
    segments = recording.memory_snapshot()
    assert [each["total_size"] // MIB for each in segments] == ([40] if is_destroyed else [20, 20])
    assert (b.ptr == a.ptr + 12 * MIB) == is_destroyed
    reserved = "reserved_bytes.all.current"
    assert recording.memory_stats()[reserved] == gpu.memory_stats()[reserved] == 40 * MIB


def test_a_gpu_goes_at_once_with_what_a_busy_or_destroyed_stream_holds():
    gpu = gpuviz.SimulatedGPU(1 << 30, settings="expandable_segments:True")
    busy = gpu.Stream(non_blocking=True)
    arrays = []
    for stream in (busy, gpu.Stream(non_blocking=True)):
        with stream:
            arrays.append(gpu.empty(30 * MIB))
            gpu.launch("k", writes=arrays, duration=3600)
    del stream

    del gpu, busy, arrays


def test_memory_is_allocated_on_the_current_stream_of_the_device(recorded):
    def program(gpu):
        with gpu.Stream(non_blocking=True):
            gpu.empty(1000)

    recording = recorded(program)

    kinds = {row["id"]: row["kind"] for row in recording.table("streams").to_pylist()}
    events = recording.table("memory_events").to_pylist()
    assert {kinds[row["stream"]] for row in events} == {"non_blocking"}
    assert [row["kind"] for row in recording.table("devices").to_pylist()] == ["simulated"]


def test_out_of_memory_carries_the_numbers_and_is_recorded():
    gpu = gpuviz.SimulatedGPU(100 * MIB, real_time=False)

    with gpuviz.record(device=gpu) as recorder:
        x = gpu.empty(60 * MIB)
        with pytest.raises(_core.OutOfMemoryError, match=r"60\.00 MiB") as error:
            gpu.empty(60 * MIB)
        del x
        assert gpu.empty(60 * MIB).nbytes == 60 * MIB

    assert error.value.requested_size == 60 * MIB
    assert error.value.device_total == 100 * MIB
    actions = [row["action"] for row in recorder.recording.table("memory_events").to_pylist()]
    assert actions.count("oom") == 1


def test_arrays_in_reference_cycles_are_freed_before_a_request_fails():
    gpu = gpuviz.SimulatedGPU(100 * MIB)
    cycle = [gpu.empty(60 * MIB)]
    cycle.append(cycle)
    del cycle

    assert gpu.empty(60 * MIB).nbytes == 60 * MIB


def test_statistics_of_the_recording_are_those_of_the_allocator(gpu):
    with gpuviz.record(device=gpu) as recorder:
        kept = [gpu.empty(size) for size in (0, 1, 1000, 3 * MIB)]
        del kept[1]

    live = gpu.memory_stats()
    recorded = recorder.recording.memory_stats()
    assert live["allocated_bytes.all.current"] == recorded["allocated_bytes.all.current"] > 0
    assert recorder.recording.manifest.memory_stats == {0: live}
