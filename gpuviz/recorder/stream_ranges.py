"""Ranges on streams, measured by CUDA events when CUPTI is unavailable."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from gpuviz import _core

# CUDA returns the time between events as a 32-bit float in ms: 0.5 µs resolution up to 8 s.
ANCHOR_LIFE_NS = 8_000_000_000
ANCHOR_TRIES = 5


class StreamEvents(Protocol):
    """CUDA events on the streams of a framework; thread-safe."""

    def place(self, stream: Any) -> tuple[int, int]:
        """Return a stream's device and handle."""

    def record(self, stream: Any) -> Any | None:
        """Record an event on a stream after all queued work; None while it captures a graph."""

    def record_at_once(self, device: int) -> Any:
        """Record an event that waits for no other work of the device."""

    def relaxed(self) -> AbstractContextManager[None]:
        """Return a context in which these calls do not invalidate a capture."""

    def is_complete(self, event: Any) -> bool:
        """Return whether the stream has reached the event."""

    def wait(self, event: Any) -> None:
        """Wait until the stream has reached the event."""

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Return the time between two complete events."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event at a known time of the host's clock, with an error of at most ``error_ns``."""

    event: Any
    host_ns: int
    error_ns: int


class StreamRange:
    """A range on a stream, from `StreamRanges.begin` to `end`."""

    __slots__ = ("anchor", "begun", "device", "ended", "handle", "name", "owner", "stream")

    def __init__(self, owner: "StreamRanges", name: bytes, stream: Any) -> None:
        self.owner, self.name, self.stream = owner, name, stream
        self.device, self.handle = owner.events.place(stream)
        self.anchor = owner.anchor(self.device)
        self.begun = owner.events.record(stream)
        self.ended: Any = None

    def end(self) -> None:
        """End the range after the work queued so far."""
        self.owner.ended(self)


class StreamRanges:
    """The ranges on streams of one session; thread-safe.

    CUDA errors do not reach the program: the range is omitted, and `notes` reports it.

    Attributes:
        error_ns: Largest error between the recording's clock and the streams': half the time to
            record an event and wait for it; 0 before the first range.
        notes: Messages for the user, in sentences.
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
        """CUDA events, created for the first range."""
        return self._make_events()

    def begin(self, name: bytes, stream: Any) -> StreamRange | None:
        """Return a range that begins after the work queued on a stream so far."""
        with self._noting(), self.events.relaxed():
            started = StreamRange(self, name, stream)
            with self._lock:
                if self._is_over or started.begun is None:
                    return None
                self._open.add(started)
            return started
        return None

    def ended(self, finished: StreamRange) -> None:
        """Record the end of a range."""
        with self._lock:
            if finished not in self._open:
                return
            self._open.remove(finished)
        with self._noting(), self.events.relaxed():
            finished.ended = self.events.record(finished.stream)
            if finished.ended is not None:
                with self._lock:
                    self._pending.append(finished)

    def abandon_after_fork(self) -> None:
        """Measure nothing from now on, in the child of a fork; a missing thread may hold the lock.

        CUDA cannot be used there, so open ranges are forgotten.
        """
        self._lock = threading.Lock()
        self._is_over = True
        self._open.clear()

    def poll(self) -> None:
        """Send the ranges that the GPU has finished to the session."""
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
        """End open ranges, wait for the GPU, and send all ranges to the session."""
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
        """Return a recent anchor of the device, from which elapsed times are accurate."""
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
        except Exception as error:  # noqa: BLE001 - the recorded program must continue
            if not self.notes:
                cause = f"{type(error).__name__}: {error}"
                self.notes.append(f"Ranges on streams could not all be measured ({cause})")
