"""`gpuviz.graph`: CUDA graphs whose memory stays theirs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

from gpuviz import _core
from gpuviz.allocator.memory import caching_allocator, chosen_device
from gpuviz.allocator.non_copyable import NonCopyable


class GraphPool(NonCopyable):
    """The private pool of one captured graph, or of several that never run at the same time.

    Its memory is released when no graph and no array uses it.
    """

    def __init__(self, allocator: _core.CachingAllocator) -> None:
        self._allocator = allocator
        self._number = allocator.create_pool()

    @property
    def id(self) -> tuple[int, int]:
        """``(0, n)``; n counts the device's private pools from 1."""
        return (0, self._number)

    def snapshot(self) -> list[dict[str, Any]]:
        """Return this pool's segments, in the shape of `gpuviz.memory_snapshot`."""
        segments = self._allocator.memory_snapshot()
        return [each for each in segments if each["segment_pool_id"] == self.id]

    @contextmanager
    def serving(self, allocator: _core.CachingAllocator) -> Iterator[None]:
        """Serve this thread's allocations from the pool in a ``with`` block.

        Raises:
            ValueError: The pool belongs to another allocator.
        """
        if allocator is not self._allocator:
            raise ValueError("pool belongs to another device than stream")
        allocator.begin_pool(self._number)
        try:
            yield
        finally:
            allocator.end_pool(self._number)

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._allocator.release_pool(self._number)


class Graph(NonCopyable):
    """A graph captured in a ``with gpuviz.graph(stream)`` block, and the memory that it uses.

    Deleting it while it runs waits for its end.

    Attributes:
        pool: The pool with the memory that was allocated during the capture. Pass it to
            `gpuviz.graph` to share it with a graph that never runs at the same time.
        replays: How often it was replayed.
    """

    def __init__(self, stream: Any, pool: GraphPool) -> None:
        self.pool = pool
        self.replays = 0
        self._stream = stream
        self._executable: Any = None
        self._kept: list[Any] = []
        self._ends: dict[int, tuple[Any, Any]] = {}  # stream and last end, by the stream's handle

    def keep(self, *arrays: Any) -> None:
        """Keep arrays as long as the graph.

        A graph uses the addresses that it was captured with. Arrays that were allocated before the
        capture must therefore live as long as the graph is replayed.
        """
        self._kept.extend(arrays)

    def replay(self, stream: Any = None) -> None:
        """Run the graph on ``stream``, by default on the one that captured it.

        Raises:
            RuntimeError: The capture has not ended or has failed, or ``stream`` is capturing.
        """
        if self._executable is None:
            raise RuntimeError("The graph cannot be replayed: its capture has not ended, or failed")
        chosen = self._stream if stream is None else stream
        if chosen.is_capturing():
            raise RuntimeError("A graph cannot be replayed on a stream that is capturing")
        self._executable.launch(chosen)
        self.replays += 1
        _, end = self._ends.get(chosen.ptr, (None, None))
        self._ends[chosen.ptr] = (chosen, chosen.record(end))

    def capture_ended(self, executable: Any) -> None:
        """Set what `replay` launches."""
        self._executable = executable

    def __del__(self) -> None:
        # Nothing that it used may be reused before it has ended.
        for _, end in getattr(self, "_ends", {}).values():
            with suppress(Exception):  # the device has failed
                end.synchronize()


@contextmanager
def graph(stream: Any, pool: GraphPool | None = None) -> Iterator[Graph]:
    """Capture what a ``with`` block runs on ``stream`` in a graph that keeps its memory.

    ::

        x = cupy.arange(1 << 20, dtype="f")
        with gpuviz.graph(stream) as graph:
            y = x * 2 + 1
        graph.keep(x)
        graph.replay()

    In the block, ``stream`` is the current one, and the calling thread's allocations on its device
    come from a private pool of gpuviz's allocator, whichever allocator CuPy uses elsewhere. While
    the graph exists, nothing else gets this memory, so that temporaries of the graph may be freed.
    `Graph.keep` keeps arrays that were allocated before. If the block raises an exception, the
    capture ends and its memory is released.

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
    allocator = getattr(stream, "allocator", None)
    is_cupy = allocator is None
    if is_cupy:
        known = getattr(stream, "device_id", -1)
        allocator = caching_allocator(chosen_device(None if known < 0 else known))
    allocator = cast("_core.CachingAllocator", allocator)
    captured = Graph(stream, GraphPool(allocator) if pool is None else pool)
    with ExitStack() as scopes:
        if is_cupy:
            from gpuviz.frameworks.cupy import caching_allocator_installed

            scopes.enter_context(caching_allocator_installed())
        scopes.enter_context(stream)
        scopes.enter_context(captured.pool.serving(allocator))
        stream.begin_capture()
        try:
            yield captured
        except BaseException:
            # The error of the block says more than that of a capture which it invalidated.
            with suppress(Exception):
                stream.end_capture()
            raise
        try:
            executable = stream.end_capture()
        except Exception as error:
            raise RuntimeError(f"The capture failed: {error}") from error
        captured.capture_ended(executable)
