"""`gpuviz.graph`: CUDA graphs whose memory stays theirs."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver
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

    Deleting it waits for the streams on which it was replayed.

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
        self._inputs: HeldMemory | None = None
        self._kept: list[Any] = []
        self._streams: dict[int, Any] = {}  # on which it was replayed, by their handles

    @property
    def held_bytes(self) -> int:
        """Bytes of arrays from before the capture that the graph uses, and that stay with it."""
        return 0 if self._inputs is None else self._inputs.nbytes

    def keep(self, *objects: Any) -> None:
        """Keep objects as long as the graph.

        Arrays of gpuviz's allocator that the graph uses stay by themselves. Memory of another
        allocator, and what kernels reach only through pointers in the GPU's memory, does not.
        """
        self._kept.extend(objects)

    def replay(self, stream: Any = None) -> None:
        """Run the graph on ``stream``, by default on the one that captured it.

        On a stream that captures another graph, it becomes a part of that graph, which keeps it.

        Raises:
            RuntimeError: The capture has not ended or has failed, or gpuviz does not know what
                ``stream`` captures.
        """
        if self._executable is None:
            raise RuntimeError("The graph cannot be replayed: its capture has not ended, or failed")
        chosen = self._stream if stream is None else stream
        if chosen.is_capturing():
            # Another stream may have begun the capture that this one takes part in.
            own = _captures.get(_key(chosen))
            capturing = list(_captures.values()) if own is None else [own]
            if not capturing:
                raise RuntimeError("A graph cannot be replayed on a stream that is capturing")
            self._executable.launch(chosen)
            for capture in capturing:
                capture.graph.keep(self)
            return
        # An event after each launch would take as long on the GPU as a short kernel.
        self._streams[chosen.ptr] = chosen
        self._executable.launch(chosen)
        self.replays += 1

    def capture_ended(self, executable: Any, inputs: "HeldMemory") -> None:
        """Set what `replay` launches, and the memory from before that it uses."""
        self._executable = executable
        self._inputs = inputs

    def __del__(self) -> None:
        # Nothing that it used may be reused before it has ended.
        streams = getattr(self, "_streams", None)
        if streams:
            used = (self._executable, self.pool, self._inputs, self._kept)
            _deleted.append((list(streams.values()), used))
            _release_deleted()


class HeldMemory(NonCopyable):
    """What is allocated now outside a pool, kept from reuse after its free, until the deletion."""

    def __init__(self, allocator: _core.CachingAllocator, pool: GraphPool) -> None:
        self._allocator = allocator
        self._number = allocator.hold_allocated(pool.id[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return self._allocator.held_bytes(self._number)

    def keep_used(self, addresses: list[int]) -> None:
        """Keep only the blocks that contain an address, also of those allocated since then."""
        self._allocator.keep_used(self._number, addresses)

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._allocator.release_hold(self._number)


class Capture:
    """A capture of a graph with its memory, from `begin` to `end` or `abort`.

    Args:
        stream: The stream that captures, of CuPy or of a `SimulatedGPU`.
        allocator: That of its device.
        graph: The graph that it becomes.
    """

    def __init__(self, stream: Any, allocator: _core.CachingAllocator, graph: Graph) -> None:
        self.graph = graph
        self._stream = stream
        self._key = _key(stream)
        self._allocator = allocator
        self._inputs: HeldMemory | None = None
        self._serving = ExitStack()

    def begin(self, begin_capture: Callable[[], None]) -> None:
        """Begin it; if that fails, nothing has changed."""
        # Of a stream that was destroyed while it captured, and had the same handle.
        stale = _captures.pop(self._key, None)
        if stale is not None:
            stale.abort()
        self._serving.enter_context(self.graph.pool.serving(self._allocator))
        self._inputs = HeldMemory(self._allocator, self.graph.pool)
        _captures[self._key] = self
        try:
            begin_capture()
        except BaseException:
            self.abort()
            raise

    def end(self, end_capture: Callable[[], Any]) -> None:
        """End it; if that fails, the memory is released."""
        try:
            addresses, are_all = _captured_addresses(self._stream)
            executable = end_capture()
            if self._inputs is not None:
                if are_all:
                    self._inputs.keep_used(addresses)
                self.graph.capture_ended(executable, self._inputs)
        finally:
            self.abort()

    def abort(self) -> None:
        """Serve no more allocations from the pool, and hold no memory unless the graph does."""
        _captures.pop(self._key, None)
        self._inputs = None
        _release_deleted()
        # Another thread may end a capture; the first one then goes on with the pool.
        with suppress(ValueError):
            self._serving.close()


# The streams of deleted graphs, and what these used.
_deleted: deque[tuple[list[Any], tuple[Any, ...]]] = deque()


def _release_deleted() -> None:
    """Release what deleted graphs used, except where a stream captures, and cannot be waited for.

    A program that captures a graph again deletes the one before during the capture.
    """
    for _ in range(len(_deleted)):
        try:
            streams, used = _deleted.popleft()
        except IndexError:
            return
        if any(_is_capturing(stream) for stream in streams):
            _deleted.append((streams, used))
            continue
        for stream in streams:
            with suppress(Exception):  # the device has failed
                stream.record().synchronize()


def _is_capturing(stream: Any) -> bool:
    with suppress(Exception):
        return bool(stream.is_capturing())
    return False


# Those that have not ended, by the allocator and the handle of their stream.
_captures: dict[tuple[int, int], Capture] = {}


def _key(stream: Any) -> tuple[int, int]:
    return id(allocator_of(stream)), stream.ptr


def is_ours(stream: Any) -> bool:
    """Return whether a stream is capturing a graph with its memory, or about to."""
    return _key(stream) in _captures


def _captured_addresses(stream: Any) -> tuple[list[int], bool]:
    """Return words that may be addresses of what a graph uses, and whether these are all."""
    if hasattr(stream, "captured_addresses"):
        return stream.captured_addresses(), True
    return cuda_driver().captured_addresses(stream.ptr)


def allocator_of(stream: Any) -> _core.CachingAllocator:
    """Return gpuviz's allocator on the device of a stream of CuPy or of a `SimulatedGPU`."""
    if hasattr(stream, "allocator"):
        return cast("_core.CachingAllocator", stream.allocator)
    known = getattr(stream, "device_id", -1)
    return caching_allocator(chosen_device(None if known < 0 else known))
