"""CuPy's own captures of graphs, on streams of a simulated GPU that have CuPy's interface."""

import gc
from types import ModuleType, SimpleNamespace

import pytest

import gpuviz
from gpuviz.frameworks.cupy_captures import CapturedGraph, watch_captures

SIZE = 4 << 20


class Graph:
    """A ``cupy.cuda.Graph``."""

    def __init__(self, simulated):
        self.simulated = simulated
        self.launches = []

    def launch(self, stream):
        self.launches.append(stream)
        if not stream.is_capturing():
            self.simulated.launch(stream.simulated)

    def upload(self, stream):
        return ("uploaded", stream)


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def cupy(gpu, monkeypatch):
    """A module whose streams gpuviz watches, with gpuviz's allocator in it."""

    class Stream:
        failure = None

        def __init__(self):
            self.simulated = gpu.Stream(non_blocking=True)
            self.ptr = self.simulated.ptr
            self.allocator = self.simulated.allocator
            self.is_capturing = self.simulated.is_capturing
            self.captured_addresses = self.simulated.captured_addresses

        def begin_capture(self, mode=None):
            if mode == "impossible":
                raise RuntimeError("no such mode")
            self.simulated.begin_capture()

        def end_capture(self):
            graph = Graph(self.simulated.end_capture())
            if self.failure is not None:
                raise self.failure
            return graph

        def record(self, event=None):
            return self.simulated.record(event)

    module = ModuleType("cupy")
    module.is_wanted = True
    module.cuda = SimpleNamespace(
        stream=SimpleNamespace(_BaseStream=Stream),
        Stream=Stream,
        get_current_stream=lambda: module.current_stream,
    )
    monkeypatch.setattr("gpuviz.frameworks.cupy_captures.import_cupy", lambda: module)
    # Not by the cache, which would keep the module and its GPU.
    watch_captures.__wrapped__(module, lambda: module.is_wanted)
    return module


def captured(gpu, stream, x, mode=None):
    """Return a graph with a temporary, which the program has freed, and the temporary's address."""
    stream.begin_capture(mode=mode)
    with stream.simulated:
        temporary = gpu.empty(SIZE)
        gpu.launch("use", reads=[x], writes=[temporary], duration=1e-6)
    return stream.end_capture(), temporary.ptr


def allocated(gpu):
    return gpu.memory_stats()["allocated_bytes.all.current"]


def reserved(gpu):
    gpu.empty_cache()
    return gpu.memory_stats()["reserved_bytes.all.current"]


def test_a_graph_keeps_its_temporaries_and_its_inputs(gpu, cupy):
    stream, x = cupy.cuda.Stream(), gpu.empty(SIZE)
    graph, temporary = captured(gpu, stream, x)
    used = {temporary, x.ptr}
    del x
    with stream.simulated:
        others = [gpu.empty(SIZE) for _ in range(4)]
    graph.launch(stream)

    assert used.isdisjoint(each.ptr for each in others)
    assert graph.held_bytes == SIZE
    assert graph.replays == 1

    del graph, others
    assert reserved(gpu) == 0


def test_a_graph_is_like_cupys(gpu, cupy):
    stream, other = cupy.cuda.Stream(), cupy.cuda.Stream()
    graph, _ = captured(gpu, stream, gpu.empty(SIZE))
    cupy.current_stream = other
    graph.launch()

    assert graph._executable.launches == [other]
    assert graph.upload(stream) == ("uploaded", stream)
    assert not hasattr(graph, "another")


def test_where_it_is_not_wanted_captures_are_as_they_were(gpu, cupy):
    cupy.is_wanted = False
    graph, temporary = captured(gpu, cupy.cuda.Stream(), gpu.empty(SIZE))

    assert type(graph) is Graph
    assert reserved(gpu) == 0
    assert temporary


def test_a_capture_that_cannot_begin_changes_nothing(gpu, cupy):
    stream, x = cupy.cuda.Stream(), gpu.empty(SIZE)
    with pytest.raises(RuntimeError, match="no such mode"):
        captured(gpu, stream, x, mode="impossible")
    del x

    assert allocated(gpu) == 0
    assert isinstance(captured(gpu, stream, gpu.empty(SIZE))[0], CapturedGraph)


def test_a_capture_that_was_invalidated_raises_cupys_error_and_keeps_nothing(gpu, cupy):
    stream, x = cupy.cuda.Stream(), gpu.empty(SIZE)
    stream.failure = OSError("invalidated")
    with pytest.raises(OSError, match="invalidated"):
        captured(gpu, stream, x)
    del x, stream.failure
    gc.collect()  # the traceback of the exception referred to the arrays

    assert allocated(gpu) == 0


def test_a_stream_that_was_destroyed_while_it_captured_leaves_nothing_to_the_next(gpu, cupy):
    stream, x = cupy.cuda.Stream(), gpu.empty(SIZE)
    stream.begin_capture()
    temporary = gpu.empty(SIZE)
    stream.simulated.end_capture()
    assert allocated(gpu) == 2 * SIZE
    graph, _ = captured(gpu, stream, x)
    del x, temporary
    assert graph.held_bytes == SIZE
    assert allocated(gpu) == SIZE

    del graph
    assert reserved(gpu) == 0


def test_a_graph_that_another_one_contains_lives_as_long(gpu, cupy):
    stream, other, x = cupy.cuda.Stream(), cupy.cuda.Stream(), gpu.empty(SIZE)
    inner, _ = captured(gpu, stream, x)
    other.begin_capture()
    inner.launch(other)
    outer = other.end_capture()
    assert inner.replays == 0
    del inner, x
    assert allocated(gpu) == SIZE

    del outer
    assert reserved(gpu) == 0
