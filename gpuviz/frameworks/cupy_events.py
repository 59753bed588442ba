"""CUDA events on CuPy's streams, for ranges measured without a tracer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuviz.allocator.driver import cuda_driver
from gpuviz.data.stream_handle import known_handle
from gpuviz.frameworks.cupy_current import current_device, import_cupy

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class CupyEvents:
    """CUDA events through CuPy; see `gpuviz.recorder.stream_ranges.StreamEvents`."""

    def __init__(self) -> None:
        self._cuda = import_cupy().cuda
        self._idle_streams: dict[int, Any] = {}

    def place(self, stream: Any) -> tuple[int, int]:
        """Return a stream's device, the current one for default streams, and its handle."""
        device = stream.device_id
        return current_device() if device < 0 else device, known_handle(stream.ptr)

    def record(self, stream: Any) -> Any | None:
        """Record an event on a stream after all queued work; None while it captures a graph."""
        if stream.is_capturing():
            return None
        with self._cuda.Device(self.place(stream)[0]):
            event = self._cuda.Event()
            event.record(stream)
        return event

    def record_at_once(self, device: int) -> Any:
        """Record an event on a stream that is used for nothing else."""
        with self._cuda.Device(device):
            stream = self._idle_streams.get(device)
            if stream is None:
                stream = self._idle_streams[device] = self._cuda.Stream(non_blocking=True)
            event = self._cuda.Event()
            event.record(stream)
        return event

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Allow this thread to query events while another thread captures a graph."""
        driver = cuda_driver()
        previous = driver.exchange_capture_mode(_RELAXED)
        try:
            yield
        finally:
            driver.exchange_capture_mode(previous)

    def is_complete(self, event: Any) -> bool:
        """Return whether the stream has reached the event."""
        return bool(event.done)

    def wait(self, event: Any) -> None:
        """Wait until the stream has reached the event."""
        event.synchronize()

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Return the time between two complete events."""
        milliseconds: float = self._cuda.get_elapsed_time(first, second)
        return round(milliseconds * 1e6)
