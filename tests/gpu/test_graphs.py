"""Captures during a recording, and the hazards of graphs."""

import cupy
import pytest

import gpuviz
from tests.gpu import graph_programs
from tests.gpu.graph_programs import EXPECTED

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpuviz_allocator():
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    yield
    cupy.cuda.set_allocator(before)


def lines(hazard):
    return hazard.first.source, hazard.second.source


@pytest.mark.parametrize("program", EXPECTED, ids=lambda each: each.__name__)
def test_hazards_of_graphs_are_found_and_corrected_programs_have_none(program):
    program()  # compiles its kernels
    for _ in range(3):
        with gpuviz.record() as recorder:
            right = program()
        found = recorder.recording.hazards()

        kinds = {each.kind for each in found if each.tier != "latent"}
        assert right or EXPECTED[program]
        assert kinds >= EXPECTED[program] if EXPECTED[program] else not kinds


def test_the_lines_of_a_reused_temporary():
    with gpuviz.record() as recorder:
        graph_programs.temporary_reused()

    (reuse,) = (each for each in recorder.recording.hazards() if each.kind == "reuse")
    assert lines(reuse) == ("other = cp.full(COUNT, 7, cp.float32)", "graph.launch(S)")
    assert reuse.tier == "certain"
    assert reuse.showed


def test_the_lines_of_a_lost_input():
    with gpuviz.record() as recorder:
        graph_programs.input_reused()

    (reuse,) = (each for each in recorder.recording.hazards() if each.kind == "reuse")
    assert lines(reuse) == ("cp.full(COUNT, 100, cp.float32)", "graph.launch(S)")


def test_the_lines_of_two_graphs_that_share_temporaries():
    with gpuviz.record() as recorder:
        graph_programs.temporaries_shared()

    found = [each for each in recorder.recording.hazards() if each.kind == "WAW"]
    assert {lines(each) for each in found} == {("graphs[0].launch(S)", "graphs[1].launch(T)")}


@pytest.mark.parametrize(
    "options", [{"allocator": "observe"}, {"graph_nodes": False}, {"api_calls": True}]
)
def test_a_capture_succeeds_with_other_options(options):
    with gpuviz.record(**options) as recorder:
        graph_programs.branches()
    calls = recorder.recording.tables["graph_calls"]["kind"].to_pylist()

    assert calls == [
        "kernel", "event_record", "stream_wait_event", "kernel", "event_record",
        "stream_wait_event", "launch",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["Global", "ThreadLocal", "Relaxed"])
def test_a_capture_succeeds_in_every_mode(mode):
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.ones(1000, cupy.float32)
    stream.synchronize()
    with gpuviz.record(), stream:
        stream.begin_capture(getattr(cupy.cuda.runtime, f"streamCaptureMode{mode}"))
        cupy.add(x, 1, out=x)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()

    assert float(x[0]) == 2


def test_a_capture_that_began_before_the_recording_succeeds():
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.ones(1000, cupy.float32)
    cupy.add(x, 1, out=x)
    cupy.cuda.Device().synchronize()
    stream.begin_capture()
    with gpuviz.record() as recorder:
        with stream:
            cupy.add(x, 1, out=x)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()

    assert float(x[0]) == 3
    assert recorder.recording.tables["graph_calls"]["capture"].to_pylist() == [0]


def test_the_graph_of_a_blocking_stream_leaves_the_default_stream_usable():
    stream = cupy.cuda.Stream()
    x = cupy.ones(1000, cupy.float32)
    cupy.add(x, 1, out=x)
    cupy.cuda.Device().synchronize()
    with gpuviz.record():
        stream.begin_capture()
        with stream:
            cupy.add(x, 1, out=x)
        kept = cupy.cuda.alloc(1 << 20)  # for the default stream
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()

    assert kept.mem.size >= 1 << 20
    assert float(x[0]) == 3


def test_a_graph_with_other_nodes_is_not_known():
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.ones(1000, cupy.float32)
    stream.synchronize()
    with gpuviz.record() as recorder:
        stream.begin_capture()
        with stream:
            cupy.add(x, 1, out=x)
            stream.launch_host_func(lambda _: None, None)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    calls = recorder.recording.tables["graph_calls"].to_pylist()

    assert [(row["kind"], row["capture"]) for row in calls] == [("kernel", 1), ("launch", 0)]


def test_the_branches_of_a_graph_do_not_run_on_the_default_stream():
    graph_programs.unordered_branches()
    with gpuviz.record() as recorder:
        graph_programs.unordered_branches()
    streams = {row["id"]: row["kind"] for row in recorder.recording.tables["streams"].to_pylist()}
    nodes = [row for row in recorder.recording.tables["activities"].to_pylist() if row["graph"]]

    assert len(nodes) == 2
    assert "default" not in {streams[row["stream"]] for row in nodes}
