"""`gpuviz.graph` with CuPy, and CuPy's own captures with gpuviz's allocator."""

from contextlib import contextmanager

import cupy as cp
import pytest

import gpuviz
from tests.gpu import graph_programs

pytestmark = pytest.mark.gpu

COUNT = 1 << 20


@pytest.fixture
def stream():
    return cp.cuda.Stream(non_blocking=True)


def settle():
    cp.cuda.Device().synchronize()


@contextmanager
def installed():
    gpuviz.allocators.cupy.install()
    try:
        yield
    finally:
        gpuviz.allocators.cupy.uninstall()


def captured(stream, factor=2, pool=None):
    with installed():
        x = cp.arange(COUNT, dtype=cp.float32)
    x * factor + 1  # compiles the kernels
    settle()
    with gpuviz.graph(stream, pool) as graph:
        result = x * factor + 1
    return graph, result, x * factor + 1


def test_a_temporary_is_not_reused(stream):
    graph, result, expected = captured(stream)
    settle()
    with installed(), stream:
        others = [cp.full(COUNT, 7, cp.float32) for _ in range(8)]
    graph.replay()
    settle()

    assert (result == expected).all()
    assert all((each == 7).all() for each in others)


def test_an_input_that_the_program_dropped_is_kept(stream):
    graph, result, expected = captured(stream)
    settle()
    with installed():
        others = [cp.full(COUNT, 100, cp.float32) for _ in range(8)]
    settle()
    for _ in range(3):
        graph.replay()
    settle()

    assert (result == expected).all()
    assert graph.replays == 3
    assert graph.held_bytes == 4 * COUNT
    assert all((each == 100).all() for each in others)


def test_graphs_with_their_own_pools_run_on_two_streams(stream):
    other = cp.cuda.Stream(non_blocking=True)
    graphs = [captured(stream, factor) for factor in (2, 3)]
    settle()
    for _ in range(20):
        graphs[0][0].replay()
        graphs[1][0].replay(other)
        settle()
        assert all((result == expected).all() for _, result, expected in graphs)


def test_the_pool_is_released_with_the_last_graph_that_shares_it(stream):
    first, result, _ = captured(stream)
    second, shared_result, _ = captured(stream, 3, first.pool)
    pool = first.pool
    del result, shared_result, first
    assert pool.snapshot()

    identifier = pool.id
    del pool, second
    gpuviz.empty_cache()
    assert identifier not in [each["segment_pool_id"] for each in gpuviz.memory_snapshot()]


def test_a_graph_is_captured_again_under_its_name(stream):
    graph, result, expected = captured(stream)
    for factor in (3, 4, 5):
        graph.replay()
        with installed():
            x = cp.arange(COUNT, dtype=cp.float32)
        settle()
        graph.replay()
        with gpuviz.graph(stream) as graph:  # deletes the one before, which runs
            result = x * factor + 1
        expected = x * factor + 1
        graph.replay()
        settle()
        assert (result == expected).all()


def wait_in_vain(stream):
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        stream.synchronize()


def test_a_capture_that_is_invalidated_says_so(stream):
    with pytest.raises(RuntimeError, match="The capture failed"), gpuviz.graph(stream):
        wait_in_vain(stream)

    graph, result, expected = captured(stream)
    graph.replay()
    settle()
    assert (result == expected).all()


def test_copies_and_fills_of_a_graph_keep_their_arrays(stream):
    with installed():
        source, filled, target = (cp.full(COUNT, 3, cp.float32) for _ in range(3))
        unused = cp.full(COUNT, 3, cp.float32)
        settle()
        with gpuviz.graph(stream) as graph:
            target.data.copy_from_device_async(source.data, source.nbytes)
            filled.data.memset_async(0, filled.nbytes)
        addresses = {each.data.ptr for each in (source, filled, target)}
        free = unused.data.ptr
        del source, filled, target, unused
        others = [cp.empty(COUNT, cp.float32) for _ in range(8)]

    assert graph.held_bytes == 3 * 4 * COUNT
    assert addresses.isdisjoint(each.data.ptr for each in others)
    assert free in {each.data.ptr for each in others}


def recorded():
    return gpuviz.record(hazards=True, record_stream="auto")


@pytest.mark.parametrize("protected", [installed, recorded])
@pytest.mark.parametrize("name", ["temporary_reused", "input_reused", "temporaries_shared"])
def test_graphs_of_cupy_keep_their_memory(name, protected):
    program = getattr(graph_programs, name)
    program()
    with protected() as recorder:
        right = [program() for _ in range(50)]

    assert all(right)
    if recorder is not None:
        assert [each.kind for each in recorder.recording.hazards()] == []


def test_a_graph_of_cupy_outlives_the_recording_with_its_memory(stream):
    x = cp.arange(COUNT, dtype=cp.float32)
    x * 2 + 1
    settle()
    with gpuviz.record(record_stream="auto"):
        kept = x + 0
        with stream:
            stream.begin_capture()
            result = kept * 2 + 1
            graph = stream.end_capture()
        del kept
    others = [cp.full(COUNT, 100, cp.float32) for _ in range(8)]
    graph.launch(stream)
    settle()

    assert (result == x * 2 + 1).all()
    assert all((each == 100).all() for each in others)
    assert graph.debug_dot_str()
