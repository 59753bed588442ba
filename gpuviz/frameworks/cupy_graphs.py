"""`graph`: captures of CUDA graphs that keep their memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from gpuviz.allocator.graph import Capture, Graph, GraphPool, allocator_of
from gpuviz.frameworks.cupy import caching_allocator_installed


@contextmanager
def graph(stream: Any, pool: GraphPool | None = None) -> Iterator[Graph]:
    """Capture what a ``with`` block runs on ``stream`` in a graph that keeps its memory.

    ::

        x = cupy.arange(1 << 20, dtype="f")
        with gpuviz.graph(stream) as graph:
            y = x * 2 + 1
        graph.replay()

    In the block, ``stream`` is the current one, and the calling thread's allocations on its device
    come from a private pool of gpuviz's allocator, whichever allocator CuPy uses elsewhere. While
    the graph exists, nothing else gets this memory, so that temporaries of the graph may be freed;
    nor does anything get that of arrays from before which the graph uses, if they are of gpuviz's
    allocator. If the block raises an exception, the capture ends and its memory is released.

    Args:
        stream: A ``cupy.cuda.Stream`` other than the default one, or a stream of a `SimulatedGPU`.
        pool: The `Graph.pool` of another graph to share its memory; by default a new pool. A replay
            then overwrites the other graph's temporaries, and its results that were freed.

    Raises:
        DeviceUnavailableError: CuPy or a usable driver is missing.
        RuntimeError: ``stream`` is the default stream or already capturing, or the block did
            something that cannot be captured.
        TypeError: ``stream`` is no stream, or ``pool`` no pool of a graph.
        ValueError: ``pool`` belongs to another device.
    """
    if not hasattr(stream, "begin_capture"):
        raise TypeError(f"stream must be a cupy.cuda.Stream, got {type(stream).__name__}")
    if pool is not None and not isinstance(pool, GraphPool):
        raise TypeError(f"pool must be the pool of a gpuviz.graph, got {type(pool).__name__}")
    if stream.is_capturing():
        raise RuntimeError("This stream is already capturing")
    allocator = allocator_of(stream)
    captured = Graph(stream, GraphPool(allocator) if pool is None else pool)
    with ExitStack() as scopes:
        if not hasattr(stream, "allocator"):
            scopes.enter_context(caching_allocator_installed())
        scopes.enter_context(stream)
        capture = Capture(stream, allocator, captured)
        capture.begin(stream.begin_capture)
        try:
            yield captured
        except BaseException:
            # The error of the block says more than that of a capture which it invalidated.
            with suppress(Exception):
                stream.end_capture()
            capture.abort()
            raise
        try:
            capture.end(stream.end_capture)
        except Exception as error:
            raise RuntimeError(f"The capture failed: {error}") from error
