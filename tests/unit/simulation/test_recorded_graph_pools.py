"""Recordings of `gpuviz.graph`: hazards of its memory, and the list of its pools."""

import pytest

import gpuviz
from tests.unit.simulation.captured_graphs import SIZE, captured, recorded


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def stream(gpu):
    return gpu.Stream(non_blocking=True)


def reused_temporary(gpu, stream, capture):
    with stream:
        graph, _, _result = capture(gpu, stream)
        other = gpu.empty(SIZE)
        gpu.launch("fill", writes=[other], duration=1e-6)
        graph.launch(stream) if hasattr(graph, "launch") else graph.replay()
        gpu.launch("read", reads=[other], duration=1e-6)
    gpu.synchronize()


def captured_without_pool(gpu, stream):
    stream.begin_capture()
    temporary, result = gpu.empty(SIZE), gpu.empty(SIZE)
    gpu.launch("make", writes=[temporary], duration=1e-6)
    gpu.launch("use", reads=[temporary], writes=[result], duration=1e-6)
    del temporary
    return stream.end_capture(), 0, result


@pytest.mark.parametrize(
    ("capture", "kinds"), [(captured_without_pool, {"reuse"}), (captured, set())]
)
def test_a_pool_prevents_the_reuse_of_a_temporary(gpu, stream, capture, kinds):
    recording = recorded(gpu, lambda: reused_temporary(gpu, stream, capture))

    assert {each.kind for each in recording.hazards()} == kinds


@pytest.mark.parametrize(("holds", "kinds"), [(False, {"reuse"}), (True, set())])
def test_an_input_that_the_program_dropped_is_not_reused(gpu, stream, holds, kinds):
    def program():
        with stream:
            x, result = gpu.empty(SIZE), gpu.empty(SIZE)
            gpu.launch("fill", writes=[x], duration=1e-6)
            if holds:
                with gpuviz.graph(stream) as graph:
                    gpu.launch("use", reads=[x], writes=[result], duration=1e-6)
            else:
                stream.begin_capture()
                gpu.launch("use", reads=[x], writes=[result], duration=1e-6)
                graph = stream.end_capture()
            del x
            other = gpu.empty(SIZE)
            gpu.launch("fill", writes=[other], duration=1e-6)
            graph.replay() if holds else graph.launch(stream)
        gpu.synchronize()

    assert {each.kind for each in recorded(gpu, program).hazards()} == kinds


@pytest.mark.parametrize(("shares", "kinds"), [(True, {"WAW"}), (False, set())])
def test_graphs_that_run_at_once_need_their_own_pools(gpu, stream, shares, kinds):
    def program():
        other = gpu.Stream(non_blocking=True)
        first, _, _result = captured(gpu, stream)
        second, _, _other_result = captured(gpu, stream, first.pool if shares else None)
        first.replay()
        second.replay(other)
        gpu.synchronize()

    assert {each.kind for each in recorded(gpu, program).hazards()} == kinds


def of_three_graphs(gpu, stream):
    first, _, result = captured(gpu, stream)
    shared, _, _shared_result = captured(gpu, stream, first.pool)
    alone, _, _other = captured(gpu, stream)
    del result
    for graph, replays in ((first, 3), (shared, 1), (alone, 4)):
        for _ in range(replays):
            graph.replay()
    gpu.synchronize()


def test_the_pools_of_graphs_are_listed_with_their_memory_and_replays(gpu, stream):
    rows = recorded(gpu, lambda: of_three_graphs(gpu, stream)).graph_pools().to_pylist()

    # The second graph uses the temporary of the first; both results were alive at once.
    assert [(row["pool"], row["graphs"], row["replays"]) for row in rows] == [(1, 2, 4), (2, 1, 4)]
    assert [row["allocated_peak"] for row in rows] == [3 * SIZE, 2 * SIZE]
    assert [row["allocated"] for row in rows] == [0, 0]
    assert all(row["reserved_peak"] >= row["allocated_peak"] for row in rows)


def test_without_captured_graphs_no_pool_is_listed(gpu, stream):
    def program():
        with stream:
            gpu.launch("use", writes=[gpu.empty(SIZE)], duration=1e-6)

    assert recorded(gpu, program).graph_pools().num_rows == 0


@pytest.mark.parametrize("has_graphs", [False, True])
def test_a_report_has_the_pools_of_graphs(gpu, stream, tmp_path, has_graphs):
    recording = recorded(gpu, lambda: of_three_graphs(gpu, stream) if has_graphs else None)
    page = recording.report(tmp_path / "report.html").read_text()

    assert ("<h3>Graphs</h3>" in page) == has_graphs
