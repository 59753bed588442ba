"""Streams, events and graphs of a simulated GPU."""

import threading
from types import TracebackType
from typing import Self

from gpuviz import _core
from gpuviz.allocator.non_copyable import NonCopyable
from gpuviz.simulation.source import DEVICE


class CurrentStream(threading.local):
    """The current stream of each thread.

    Attributes:
        streams: The streams of the enclosing ``with`` blocks, innermost last.
    """

    def __init__(
        self,
        native: _core.SimulatedGpu,
        allocator: _core.CachingAllocator,
        host_allocator: _core.HostAllocator,
    ) -> None:
        self.allocator = allocator
        self.host_allocator = host_allocator
        self.null = SimulatedStream(native, self, 0, owned=False)
        self.streams: list[SimulatedStream] = []

    @property
    def stream(self) -> "SimulatedStream":
        """The innermost of ``streams``, else the default stream."""
        return self.streams[-1] if self.streams else self.null


class SimulatedEvent(NonCopyable):
    """A point in a stream's work, like ``cupy.cuda.Event``."""

    def __init__(self, native: _core.SimulatedGpu, current: CurrentStream) -> None:
        self._native = native
        self._current = current
        self.ptr = native.create_event()

    def __del__(self) -> None:
        if hasattr(self, "ptr"):
            self._native.destroy_event(self.ptr)

    def record(self, stream: "SimulatedStream | None" = None) -> None:
        """Record the event after all work queued on ``stream``, by default the current one."""
        chosen = self._current.stream if stream is None else stream
        chosen.check_not_capturing("an event")
        self._native.record_event(self.ptr, chosen.ptr)

    def synchronize(self) -> None:
        """Wait until the stream has reached the event."""
        self._native.synchronize_event(self.ptr)

    @property
    def done(self) -> bool:
        """Whether the stream has reached the event."""
        return self._native.is_complete(self.ptr)


class SimulatedStream(NonCopyable):
    """A queue of work, like ``cupy.cuda.Stream``: in ``with`` it is the current one.

    Attributes:
        ptr: Its handle, which may be reused after the stream is destroyed.
        device_id: The ordinal of its GPU.
    """

    device_id = DEVICE

    def __init__(
        self, native: _core.SimulatedGpu, current: CurrentStream, ptr: int, *, owned: bool
    ) -> None:
        self._native = native
        self._current = current
        self._owned = owned
        self._capture: int | None = None
        self.ptr = ptr

    def __del__(self) -> None:
        if self._owned:
            self._current.host_allocator.end_stream(self.allocator.device, self.ptr)
            self._native.destroy_stream(self.ptr)

    def __enter__(self) -> Self:
        """Make it the current stream of the calling thread."""
        self._current.streams.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restore the previous current stream."""
        self._current.streams.pop()

    @property
    def allocator(self) -> _core.CachingAllocator:
        """The allocator of its GPU."""
        return self._current.allocator

    def belongs_to(self, native: _core.SimulatedGpu) -> bool:
        """Return whether it is a stream of this GPU."""
        return self._native is native

    def record(self, event: SimulatedEvent | None = None) -> SimulatedEvent:
        """Record an event, by default a new one, after all queued work, and return it."""
        recorded = SimulatedEvent(self._native, self._current) if event is None else event
        recorded.record(self)
        return recorded

    def wait_event(self, event: SimulatedEvent) -> None:
        """Make later work of this stream wait for an event; the host does not wait."""
        self.check_not_capturing("a wait")
        self._native.wait_event(self.ptr, event.ptr)

    def synchronize(self) -> None:
        """Wait until all work of this stream is done."""
        self.check_not_capturing("a wait")
        self._native.synchronize_stream(self.ptr)

    @property
    def done(self) -> bool:
        """Whether all work of this stream is done."""
        return self._native.is_idle(self.ptr)

    def launch(self, kernel: _core.GpuKernel) -> None:
        """Run a kernel, or add it to the graph being captured."""
        if self._capture is None:
            self._native.launch(self.ptr, kernel)
        else:
            self._native.capture(self._capture, kernel)

    def check_not_capturing(self, what: str) -> None:
        """Raise a RuntimeError that names the operation ``what`` during a capture."""
        if self._capture is not None:
            raise RuntimeError(
                f"A simulated graph contains kernels only; call end_capture() before {what}"
            )

    def is_capturing(self) -> bool:
        """Return whether launches are captured instead of run."""
        return self._capture is not None

    def begin_capture(self) -> None:
        """Capture the kernels launched on this stream in a graph, instead of running them."""
        if self._capture is not None:
            raise RuntimeError("This stream is already capturing; call end_capture() first")
        self._capture = self._native.begin_capture(self.ptr)

    def captured_addresses(self) -> list[int]:
        """Return the addresses that the kernels captured so far use."""
        return [] if self._capture is None else self._native.captured_addresses(self._capture)

    def end_capture(self) -> "SimulatedGraph":
        """End the capture, and return the graph."""
        if self._capture is None:
            raise RuntimeError("This stream is not capturing; call begin_capture() first")
        capture, self._capture = self._capture, None
        return SimulatedGraph(self._native, self._current, capture)


class SimulatedGraph(NonCopyable):
    """Kernels launched together, one after the other, like ``cupy.cuda.Graph``."""

    def __init__(self, native: _core.SimulatedGpu, current: CurrentStream, capture: int) -> None:
        self._native = native
        self._current = current
        self._id = native.end_capture(capture)

    def __del__(self) -> None:
        if hasattr(self, "_id"):
            self._native.destroy_graph(self._id)

    def launch(self, stream: SimulatedStream | None = None) -> None:
        """Run the kernels on ``stream``, by default the current one."""
        chosen = self._current.stream if stream is None else stream
        chosen.check_not_capturing("a graph")
        self._native.launch_graph(chosen.ptr, self._id)
