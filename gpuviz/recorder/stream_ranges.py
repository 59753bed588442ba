"""Ranges on streams, measured by CUDA events when CUPTI is unavailable."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from gpuviz import _core

# The time between two events comes as a 32-bit float of milliseconds: to 0.5 µs up to 8 s.
ANCHOR_LIFE_NS = 8_000_000_000
ANCHOR_TRIES = 5


class StreamEvents(Protocol):
    """CUDA events on the streams of a framework; any thread."""

    def place(self, stream: Any) -> tuple[int, int]:
        """Return a stream's device and the handle under which it is known."""

    def record(self, stream: Any) -> Any | None:
        """Return an event after all that is queued on a stream; None while it captures a graph."""

    def record_at_once(self, device: int) -> Any:
        """Return an event that waits for nothing on its device."""

    def relaxed(self) -> AbstractContextManager[None]:
        """Return a scope in which these calls disturb no capture."""

    def is_complete(self, event: Any) -> bool:
        """Return whether the stream has come by the event."""

    def wait(self, event: Any) -> None:
        """Return when the stream has come by the event."""

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Return the time between two complete events."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event of a device at a known time of the host's clock, off by at most ``error_ns``."""

    event: Any
    host_ns: int
    error_ns: int


class StreamRange:
    """One range on one stream, from `StreamRanges.begin` until `end`."""

    __slots__ = ("anchor", "begun", "device", "ended", "handle", "name", "owner", "stream")

    def __init__(self, owner: "StreamRanges", name: bytes, stream: Any) -> None:
        self.owner, self.name, self.stream = owner, name, stream
        self.device, self.handle = owner.events.place(stream)
        self.anchor = owner.anchor(self.device)
        self.begun = owner.events.record(stream)
        self.ended: Any = None

    def end(self) -> None:
        """Measure until the work that is queued by now."""
        self.owner.ended(self)


class StreamRanges:
    """The ranges on streams of one session; any thread.

    An error of CUDA does not reach the program: the range is left out, and `notes` says so.

    Attributes:
        error_ns: How far the recording's clock and the streams' may be apart: half of the time in
            which an event was recorded and awaited, at worst; 0 before the first range.
        notes: What the user should know, in sentences.
    """

    def __init__(self, session: _core.Session, make_events: Callable[[], StreamEvents]) -> None:
        self._make_events = make_events
        self.error_ns = 0
        self.notes: list[str] = []
        self._session = session
        self._anchors: dict[int, Anchor] = {}
        self._lock = threading.Lock()
        self._open: set[StreamRange] = set()
        self._pending: list[StreamRange] = []
        self._is_over = False

    @cached_property
    def events(self) -> StreamEvents:
        """CUDA events, from the first range on."""
        return self._make_events()

    def begin(self, name: bytes, stream: Any) -> StreamRange | None:
        """Return a range that begins after all that is queued on a stream by now."""
        with self._noting(), self.events.relaxed():
            started = StreamRange(self, name, stream)
            with self._lock:
                if self._is_over or started.begun is None:
                    return None
                self._open.add(started)
            return started
        return None

    def ended(self, finished: StreamRange) -> None:
        """Take a range whose end was not measured yet."""
        with self._lock:
            if finished not in self._open:
                return
            self._open.remove(finished)
        with self._noting(), self.events.relaxed():
            finished.ended = self.events.record(finished.stream)
            if finished.ended is not None:
                with self._lock:
                    self._pending.append(finished)

    def poll(self) -> None:
        """Give the session the ranges that the GPU has finished."""
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        with self._noting(), self.events.relaxed():
            while pending:
                if self.events.is_complete(pending[-1].ended):
                    self._add(pending.pop())
                else:
                    with self._lock:
                        self._pending.append(pending.pop())

    def finish(self) -> None:
        """End the ranges that are open, wait for the GPU, and give the session all of them."""
        with self._lock:
            self._is_over = True
            still_open = list(self._open)
        for started in still_open:
            self.ended(started)
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        with self._noting(), self.events.relaxed():
            for finished in pending:
                self.events.wait(finished.ended)
                self._add(finished)

    def anchor(self, device: int) -> Anchor:
        """Return an event of the device that is not too old to measure from."""
        known = self._anchors.get(device)
        if known is None or time.monotonic_ns() - known.host_ns > ANCHOR_LIFE_NS:
            tries = [self._new_anchor(device) for _ in range(ANCHOR_TRIES)]
            known = self._anchors[device] = min(tries, key=lambda anchor: anchor.error_ns)
            self.error_ns = max(self.error_ns, known.error_ns)
        return known

    def _new_anchor(self, device: int) -> Anchor:
        before = time.monotonic_ns()
        event = self.events.record_at_once(device)
        self.events.wait(event)
        after = time.monotonic_ns()
        return Anchor(event, (before + after) // 2, (after - before + 1) // 2)

    def _add(self, finished: StreamRange) -> None:
        began = finished.anchor.host_ns + self.events.elapsed_ns(
            finished.anchor.event,
            finished.begun,
        )
        ended = began + self.events.elapsed_ns(finished.begun, finished.ended)
        _core.add_stream_range(
            self._session,
            finished.name,
            finished.device,
            finished.handle,
            began,
            ended,
        )

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the program that is recorded must go on
            if not self.notes:
                cause = f"{type(error).__name__}: {error}"
                self.notes.append(f"Ranges on streams could not all be measured ({cause})")
