"""`gpuviz.graph` with CuPy."""

import cupy as cp
import pytest

import gpuviz

pytestmark = pytest.mark.gpu

COUNT = 1 << 20


@pytest.fixture
def stream():
    return cp.cuda.Stream(non_blocking=True)


def settle():
    cp.cuda.Device().synchronize()


def captured(stream, factor=2, pool=None):
    x = cp.arange(COUNT, dtype=cp.float32)
    x * factor + 1  # compiles the kernels
    settle()
    with gpuviz.graph(stream, pool) as graph:
        result = x * factor + 1
    graph.keep(x)
    return graph, result, x * factor + 1


def test_a_temporary_is_not_reused(stream):
    graph, result, expected = captured(stream)
    settle()
    with stream:
        others = [cp.full(COUNT, 7, cp.float32) for _ in range(8)]
    graph.replay()
    settle()

    assert (result == expected).all()
    assert all((each == 7).all() for each in others)


def test_an_input_that_the_program_dropped_is_kept(stream):
    graph, result, expected = captured(stream)
    settle()
    others = [cp.full(COUNT, 100, cp.float32) for _ in range(8)]
    settle()
    for _ in range(3):
        graph.replay()
    settle()

    assert (result == expected).all()
    assert graph.replays == 3
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
