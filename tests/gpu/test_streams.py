"""CUPTI's activities of real streams, against known answers."""

import time

import cupy
import cupyx
import numpy as np
import pytest

import gpuviz

pytestmark = pytest.mark.gpu

SPIN = r"""
extern "C" __global__ void spin(long long cycles, const float* from, float* to) {
    long long began = clock64();
    while (clock64() - began < cycles) {}
    if (to != nullptr) to[0] = from[0];
}
"""
MILLISECOND = 1_980_000  # cycles at the highest clock of an H100; more time at a lower one


@pytest.fixture(scope="module")
def spin():
    kernel = cupy.RawKernel(SPIN, "spin")
    nowhere = cupy.zeros(1, "f4")
    kernel((1,), (1,), (1000, nowhere, nowhere))
    cupy.cuda.Device().synchronize()

    def launch(milliseconds, stream=None, touched=nowhere):
        cycles = int(MILLISECOND * milliseconds)
        with stream or cupy.cuda.get_current_stream():
            kernel((1,), (1,), (cycles, touched, touched))

    return launch


def rows(recording, table="activities", **wanted):
    """Return the rows of a table with names as text, in order of time."""
    names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    found = [
        row | ({"name": names.get(row["name"], "")} if "name" in row else {})
        for row in recording.table(table).to_pylist()
    ]
    kept = [row for row in found if all(row[key] == value for key, value in wanted.items())]
    return sorted(kept, key=lambda row: row.get("time", 0))


def overlap_ns(first, second):
    return max(0, min(first["end"], second["end"]) - max(first["time"], second["time"]))


def test_durations_are_those_of_cuda_events(spin):
    stream = cupy.cuda.Stream(non_blocking=True)
    measured = []
    with gpuviz.record() as recorder:
        for milliseconds in (1, 3, 10):
            began, ended = cupy.cuda.Event(), cupy.cuda.Event()
            spin(2, stream)  # the following is queued in the meantime
            began.record(stream)
            spin(milliseconds, stream)
            ended.record(stream)
            ended.synchronize()
            measured.append(cupy.cuda.get_elapsed_time(began, ended) * 1e6)
    kernels = rows(recorder.recording, kind="kernel", name="spin")[1::2]
    assert [row["end"] - row["time"] for row in kernels] == pytest.approx(measured, rel=0.01)


def test_small_kernels_overlap_on_two_streams_and_not_on_one(spin):
    one, two = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    with gpuviz.record() as recorder:
        spin(5, one)
        spin(5, two)
        cupy.cuda.Device().synchronize()
        spin(5, one)
        spin(5, one)
    first, second, third, fourth = rows(recorder.recording, kind="kernel", name="spin")
    assert overlap_ns(first, second) > 4e6
    assert overlap_ns(third, fourth) == 0
    assert first["stream"] != second["stream"]
    assert recorder.recording.overlap().devices[0].kernel_kernel_ns > 4e6


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_a_pinned_copy_overlaps_a_kernel_and_a_pageable_one_does_not(spin, memory):
    count = 1 << 26  # the kernel begins a quarter of a millisecond after the copy
    host = cupyx.empty_pinned(count, "f4") if memory == "pinned" else np.empty(count, "f4")
    host[:] = 1
    one, two = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    target = cupy.empty(count, "f4")
    with gpuviz.record() as recorder:
        target.set(host, stream=one)
        spin(20, two)
    copy, *_ = rows(recorder.recording, kind="memcpy", copy_kind="host_to_device")
    kernel, *_ = rows(recorder.recording, kind="kernel", name="spin")
    assert copy["source"] == memory
    assert copy["destination"] == "device"
    assert copy["bytes"] == 4 * count
    if memory == "pinned":
        assert overlap_ns(copy, kernel) > 0.8 * (copy["end"] - copy["time"])
        assert recorder.recording.overlap().devices[0].kernel_copy_overlap > 0.8
    else:
        # The call returns when the last piece is staged, so almost nothing can overlap.
        assert overlap_ns(copy, kernel) < 0.1 * (copy["end"] - copy["time"])
        waits = recorder.recording.synchronizations("line").to_pylist()
        assert any(
            row["kind"] == "pageable_memcpy" and "set(host" in row["source"] for row in waits
        )


def test_an_event_wait_orders_two_streams_and_is_an_edge(spin):
    one, two = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    event = cupy.cuda.Event(disable_timing=True)
    with gpuviz.record() as recorder:
        spin(5, one)
        event.record(one)
        two.wait_event(event)
        spin(1, two)
    recording = recorder.recording
    first, second = rows(recording, kind="kernel", name="spin")
    assert second["time"] >= first["end"]
    record = next(
        row
        for row in rows(recording, "synchronizations", kind="event_record")
        if row["stream"] == first["stream"]
    )
    (wait,) = rows(recording, "synchronizations", kind="stream_wait_event")
    assert wait["event_sync_id"] == record["event_sync_id"] != 0
    assert wait["stream"] == second["stream"]
    (edge,) = recording.derived["stream_waits"].to_pylist()
    assert first["end"] <= edge["recorded_time"] <= second["time"]
    waiting = next(
        stream for stream in recording.overlap().streams if stream.stream == second["stream"]
    )
    assert waiting.count == 1


def test_a_wait_for_an_event_that_was_not_recorded_yet_is_none(spin):
    one, two = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    before = cupy.cuda.Event(disable_timing=True)
    with gpuviz.record() as recorder:
        event = cupy.cuda.Event(disable_timing=True)
        spin(5, one)
        two.wait_event(event)
        event.synchronize()
        event.record(one)
        spin(1, two)
        two.wait_event(event)
        two.wait_event(before)
    recording = recorder.recording
    first, second = rows(recording, kind="kernel", name="spin")
    assert second["time"] < first["end"]
    (record,) = rows(recording, "synchronizations", kind="event_record")
    waits = rows(recording, "synchronizations", kind="stream_wait_event")
    assert [wait["event_sync_id"] for wait in waits] == [record["event_sync_id"], 0]
    assert rows(recording, "synchronizations", kind="event_synchronize") == []


@pytest.mark.parametrize("graph_nodes", [True, False])
def test_a_graph_is_seen_by_its_kernels_or_as_a_whole(spin, graph_nodes):
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    spin(1, stream)
    spin(2, stream)
    graph = stream.end_capture()
    with gpuviz.record(graph_nodes=graph_nodes) as recorder:
        graph.launch(stream)
        stream.synchronize()
    kernels = rows(recorder.recording, kind="kernel", name="spin")
    graphs = rows(recorder.recording, kind="graph")
    if graph_nodes:
        assert len(kernels) == 2
        assert graphs == []
        assert kernels[0]["graph"] == kernels[1]["graph"] != 0
        assert kernels[0]["graph_node"] != kernels[1]["graph_node"]
    else:
        assert kernels == []
        (whole,) = graphs
        assert whole["end"] - whole["time"] >= 2.9e6
    (launch,) = rows(recorder.recording, "api_calls", name="cuGraphLaunch")
    assert launch["correlation"] == (kernels or graphs)[0]["correlation"]


def test_an_allocation_between_two_kernels_stays_between_them(spin):
    rounds = 300
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record() as recorder:
        for _ in range(rounds):
            spin(0.02, stream)
            stream.synchronize()
            cupy.empty(1000)
            spin(0.02, stream)
            stream.synchronize()
    recording = recorder.recording
    kernels = rows(recording, kind="kernel", name="spin")
    events = rows(recording, "memory_events", action="alloc", requested_size=8000)
    calls = {row["correlation"]: row for row in rows(recording, "api_calls")}
    assert len(kernels) == 2 * rounds
    assert len(events) == rounds
    before = [event["time"] - kernels[2 * n]["end"] for n, event in enumerate(events)]
    after = [kernels[2 * n + 1]["time"] - event["time"] for n, event in enumerate(events)]
    causes = [row["time"] - calls[row["correlation"]]["time"] for row in kernels]
    print(f"kernel end to allocation: {min(before)} ns at least, {np.median(before):.0f} mostly")
    print(f"allocation to kernel start: {min(after)} ns at least, {np.median(after):.0f} mostly")
    print(f"launch call to kernel start: {min(causes)} ns at least, {np.median(causes):.0f} mostly")
    assert min(before) > 0
    assert min(after) > 0
    assert min(causes) > 0


def test_streams_are_told_as_their_users_know_them(spin):
    old = cupy.cuda.Stream()
    old_free = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record() as recorder:
        urgent = cupy.cuda.Stream(priority=-1)
        for stream in (old, old_free, urgent, cupy.cuda.Stream.null, cupy.cuda.Stream.ptds):
            spin(0.1, stream)
            with stream:
                cupy.empty(100)
        cupy.cuda.Device().synchronize()
    recording = recorder.recording
    streams = {row["id"]: row for row in recording.table("streams").to_pylist()}
    used = [streams[row["stream"]] for row in rows(recording, kind="kernel", name="spin")]
    by_handle = {row["handle"]: row for row in used}
    assert by_handle[old.ptr]["kind"] == "blocking"
    assert by_handle[old.ptr]["created"] == 0
    assert by_handle[old_free.ptr]["kind"] == "non_blocking"
    assert by_handle[urgent.ptr]["priority"] < 0
    assert by_handle[urgent.ptr]["created"] > 0
    assert by_handle[0]["kind"] == "default"
    assert sorted(row["kind"] for row in used).count("per_thread_default") == 1
    # Allocator events refer to the same rows.
    in_memory = {row["stream"] for row in recording.table("memory_events").to_pylist()}
    assert {row["id"] for row in used} <= in_memory | {by_handle[0]["id"]}
    handles = [(row["device"], row["handle"]) for row in streams.values()]
    assert len(handles) == len(set(handles))


def test_a_handle_that_is_used_again_is_another_stream(spin):
    seen = []
    with gpuviz.record() as recorder:
        for _ in range(20):
            stream = cupy.cuda.Stream(non_blocking=True)
            spin(0.01, stream)
            seen.append(stream.ptr)
            del stream  # destroyed while its kernel may still run
    assert len(set(seen)) < len(seen)
    kernels = rows(recorder.recording, kind="kernel", name="spin")
    assert len(kernels) == 20
    assert len({row["stream"] for row in kernels}) == 20
    streams = {row["id"]: row for row in recorder.recording.table("streams").to_pylist()}
    assert [streams[row["stream"]]["handle"] for row in kernels] == seen
    lives = [
        (streams[row["stream"]]["created"], streams[row["stream"]]["destroyed"]) for row in kernels
    ]
    assert all(0 < created < destroyed for created, destroyed in lives)


def test_every_launch_has_its_line_and_its_blocks(spin):
    with gpuviz.record() as recorder:
        a = cupy.ones((300, 300), "f4")
        b = cupy.add(a, a)  # line of add
        c = b @ a  # line of matmul
        host = cupy.asnumpy(c)
        spin(0.1, touched=b)
    assert host[0, 0] == 600
    recording = recorder.recording
    blocks = {}
    for row in recording.table("launch_blocks").to_pylist():
        blocks.setdefault(row["correlation"], []).append((row["block"], row["mode"]))
    calls = {row["correlation"]: row for row in rows(recording, "api_calls")}
    lines = {row["name"]: row["source"] for row in recording.kernels("line").to_pylist()}
    add = next(row for row in rows(recording, kind="kernel") if row["name"].startswith("cupy_add"))
    assert sorted(set(blocks[add["correlation"]])) == sorted(
        {(a.data.ptr, "read"), (b.data.ptr, "write")},
    )
    assert "# line of add" in lines[add["name"]]
    product = [row for row in recording.kernels("line").to_pylist() if "matmul" in row["source"]]
    assert product
    (copy,) = rows(recording, kind="memcpy", copy_kind="device_to_host")
    assert blocks[copy["correlation"]] == [(c.data.ptr, "read")]
    (spun,) = rows(recording, kind="kernel", name="spin")
    assert {block for block, _ in blocks[spun["correlation"]]} == {b.data.ptr}
    for row in rows(recording, kind="kernel"):
        assert calls[row["correlation"]]["stack"] != 0


def test_libraries_are_seen_and_their_launches_read():
    cupy.random.seed(1)
    a = cupy.random.random((256, 256))
    with gpuviz.record() as recorder:
        cupy.linalg.solve(a, a)
        cupy.linalg.svd(a)
        cupy.fft.fft2(a)
        cupy.sort(a.ravel())
        cupyx.scipy.sparse.csr_matrix(a > 0.5, dtype="f8") @ a
        cupy.cuda.Device().synchronize()
    kernels = rows(recorder.recording, kind="kernel")
    assert len(kernels) > 50
    touching = {row["correlation"] for row in recorder.recording.table("launch_blocks").to_pylist()}
    silent = {row["name"] for row in kernels if row["correlation"] not in touching}
    assert len(silent) < 0.2 * len({row["name"] for row in kernels}), silent
    assert recorder._live.tracer._tracer.unreadable_launches == 0


def test_the_live_recording_grows_while_the_gpu_is_never_idle(spin):
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record() as recorder:
        seen = []
        for _ in range(5):
            ends = time.monotonic() + 0.2
            while time.monotonic() < ends:
                spin(0.05, stream)
                spin(0.05, stream)
                stream.synchronize()
            seen.append(recorder.status().activities)
    assert seen == sorted(set(seen))
    assert seen[0] > 0


def test_what_is_in_flight_at_the_end_is_recorded(spin):
    with gpuviz.record() as recorder:
        spin(50)
    (kernel,) = rows(recorder.recording, kind="kernel", name="spin")
    assert kernel["end"] - kernel["time"] > 45e6
