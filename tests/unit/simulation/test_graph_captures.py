"""Captures of `gpuviz.graph` that fail or are refused."""

import gc

import pytest

import gpuviz
from tests.unit.simulation.captured_graphs import SIZE, captured, reserved


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def stream(gpu):
    return gpu.Stream(non_blocking=True)


def test_a_failed_capture_holds_nothing(gpu, stream):
    def use_and_fail():
        x = gpu.empty(SIZE)
        with gpuviz.graph(stream):
            gpu.launch("use", reads=[x], duration=1e-6)
            allocate_and_fail(gpu)

    with pytest.raises(KeyError):
        use_and_fail()
    gc.collect()  # the traceback of the exception referred to the arrays

    assert gpu.memory_stats()["active_bytes.all.current"] == 0


def allocate_and_fail(gpu):
    gpu.empty(SIZE)
    raise KeyError("reason")


def test_an_exception_ends_the_capture_and_releases_its_memory(gpu, stream):
    with pytest.raises(KeyError, match="reason"), gpuviz.graph(stream) as graph:
        allocate_and_fail(gpu)
    with pytest.raises(RuntimeError, match="its capture has not ended, or failed"):
        graph.replay()
    assert not stream.is_capturing()

    del graph
    gpu.empty_cache()
    assert reserved(gpu) == 0
    captured(gpu, stream)[0].replay()


def test_a_graph_cannot_be_captured_or_replayed_in_a_capture(gpu, stream):
    graph, _, _result = captured(gpu, stream)
    with gpuviz.graph(stream):
        with (
            pytest.raises(RuntimeError, match="This stream is already capturing"),
            gpuviz.graph(stream),
        ):
            pass
        with pytest.raises(RuntimeError, match="A simulated graph contains kernels only"):
            graph.replay()
    other = gpu.Stream(non_blocking=True)
    other.begin_capture()
    with pytest.raises(RuntimeError, match="cannot be replayed on a stream that is capturing"):
        graph.replay(other)


def test_a_capture_that_cannot_begin_leaves_no_pool_active(gpu, stream, monkeypatch):
    def refuse():
        raise RuntimeError("refused")

    monkeypatch.setattr(stream, "begin_capture", refuse)
    with pytest.raises(RuntimeError, match="refused"), gpuviz.graph(stream):
        pass

    assert gpu.current_stream is not stream
    x = gpu.empty(SIZE)
    gpu.empty_cache()
    del x
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_a_capture_that_fails_at_its_end_releases_its_memory(gpu, stream, monkeypatch):
    def invalidated():
        raise OSError("the capture was invalidated")

    monkeypatch.setattr(stream, "end_capture", invalidated)
    with pytest.raises(RuntimeError, match="The capture failed: the capture was invalidated"):
        captured(gpu, stream)

    gc.collect()  # the traceback of the exception referred to the arrays
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_arguments_of_another_kind_are_refused(gpu, stream):
    graph, _, _result = captured(gpu, stream)
    elsewhere = gpuviz.SimulatedGPU(real_time=False).Stream()
    for arguments, error, text in [
        ((7,), TypeError, "stream must be a cupy.cuda.Stream, got int"),
        ((stream, 7), TypeError, "pool must be the pool of a gpuviz.graph, got int"),
        ((elsewhere, graph.pool), ValueError, "another device"),
    ]:
        with pytest.raises(error, match=text), gpuviz.graph(*arguments):
            pass
