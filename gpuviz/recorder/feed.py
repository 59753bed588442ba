"""Delivery of recorded batches to listeners during a recording."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from gpuviz.data.derived import OF_ROWS
from gpuviz.data.derived import schemas as derived_schemas
from gpuviz.data.tables import Tables
from gpuviz.recorder.feed_streams import derived_stream, split, streams
from gpuviz.recorder.live_classification import LiveClassification

# Interval of messages without rows, which keep the listeners' time axis current.
SILENCE_S = 0.9
# What follows from rows is computed for so long between two drains; taking the GIL back a hundred
# times from a cell that computes takes half a second.
CLASSIFICATION_S = 0.1
# Recent messages kept for listeners that missed them; others get a snapshot.
KEPT_BYTES = 32 << 20


@dataclass(frozen=True)
class FeedMessage:
    """Rows recorded since the previous message, or a part of a snapshot of all rows.

    Attributes:
        number: The number of the message, consecutive; of a snapshot, the number of the last
            message that it includes.
        tables: Names of tables and their rows, each as an Arrow IPC stream, in order.
        part: The part of a snapshot; the first one replaces all earlier rows.
        parts: The number of parts of a snapshot; 0 if the message is not part of one.
        recording: Whether more may follow.
        duration_ns: Nanoseconds since the start of the recording.
        initial_events: Number of initial events at the start of ``memory_events``.
        replace_from_ns: By name of a derived table, the time from which earlier rows are replaced.
    """

    number: int
    tables: tuple[tuple[str, bytes], ...]
    part: int
    parts: int
    recording: bool
    duration_ns: int
    initial_events: int
    replace_from_ns: Mapping[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Size of all rows in bytes."""
        return sum(len(stream) for _, stream in self.tables)


Listener = Callable[[FeedMessage], None]
Contents = Callable[[], "tuple[Tables, int]"]


class Feed:
    """Sends the rows that a pump stores to listeners, as numbered messages; thread-safe.

    Listeners are called one after the other, usually on the pump's thread, and must not block. A
    listener that raises an exception is removed. After a call that did not complete, listeners get
    a snapshot.

    Attributes:
        lock: To be held while rows are stored and passed to `take`.

    Args:
        contents: Returns everything stored so far, and the number of initial events.
        duration_ns: Returns nanoseconds since the start of the recording.
        classification: Computes the derived tables during the recording.
    """

    def __init__(
        self,
        contents: Contents,
        duration_ns: Callable[[], int],
        classification: LiveClassification | None = None,
    ) -> None:
        self._contents = contents
        self._classification = classification or LiveClassification()
        self._duration_ns = duration_ns
        self.lock = threading.RLock()
        self._pending: list[tuple[str, pa.RecordBatch]] = []
        self._listeners: dict[object, Listener] = {}
        self._recent: deque[FeedMessage] = deque()
        self._recent_bytes = 0
        self._number = 0
        self._published_s = 0.0
        self._recording = True
        self._has_followed = False
        self._is_torn = False

    @property
    def classification_s(self) -> float:
        """CPU time of all that was computed from rows."""
        return self._classification.cpu_s

    @property
    def listeners(self) -> int:
        """Number of listeners."""
        return len(self._listeners)

    def take(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows that have just been stored."""
        with self.lock:
            if self._is_torn:
                return  # The snapshot will have them.
            with self._changing():
                if self._listeners:
                    self._pending.append((table, batch))
                    self._classification.take(table, batch)
                else:
                    self._forget()

    def take_concluded(self, name: str, table: pa.Table) -> None:
        """Add rows that follow from those stored so far."""
        with self.lock:
            if self._listeners and not self._is_torn:
                self._pending += ((name, batch) for batch in table.to_batches())

    def publish(self) -> None:
        """Send all rows since the last call to all listeners, and then what follows from them.

        Without new rows, a message is sent only every `SILENCE_S` seconds.
        """
        with self._changing() as was_torn:
            silent_s = time.monotonic() - self._published_s
            if was_torn:
                self._restart()
            elif self._listeners:
                if self._pending or silent_s >= SILENCE_S:
                    self._publish({})
                if self._classification.is_due():
                    self._classify(time.monotonic() + CLASSIFICATION_S)

    def invalidate(self) -> None:
        """Send a snapshot next time, because rows may have been stored but not passed to `take`."""
        with self.lock:
            self._is_torn = True

    def restart(self) -> None:
        """Send a snapshot to all listeners, which replaces everything sent before."""
        with self._changing():
            self._restart()

    def close(self, concluded: Callable[[], Tables] = dict) -> None:
        """Send the last message, and remove all listeners.

        Args:
            concluded: Returns what follows from the whole recording; called only for listeners.
        """
        with self._changing() as was_torn:
            if not was_torn and self._classification.is_updating:
                self._classify()
            self._recording = False
            if was_torn:
                self._restart()
            elif self._listeners:
                for name, table in concluded().items():
                    self._pending += ((name, batch) for batch in table.to_batches())
                self._classify()
            self._listeners.clear()

    def abandon_after_fork(self) -> None:
        """Remove all listeners in the child of a fork; a missing thread may hold the lock."""
        self.lock = threading.RLock()
        self._recording = False
        self._listeners.clear()

    def subscribe(self, listener: Listener, since: int = -1) -> Callable[[], None]:
        """Send a listener the messages after a given one, or a snapshot, and all later messages.

        Args:
            listener: Called with each message, first from within this call.
            since: The number of the last message that it has; -1 if none.

        Returns:
            A function that ends the subscription; it may be called repeatedly.
        """
        key = object()

        def unsubscribe() -> None:
            # A single step; the next rows find out that nobody listens.
            with self.lock:
                self._listeners.pop(key, None)

        try:
            with self._changing() as was_torn:
                if was_torn:
                    self._restart()
                elif self._listeners:
                    # A snapshot is classified up to now; bring earlier listeners to the same state.
                    if self._classification.is_updating:
                        self._classify()
                    self._classify()
                else:
                    self._forget()
                for message in list(self._missed(since)):
                    listener(message)
                if self._recording:
                    self._has_followed = True
                    self._listeners[key] = listener
        except BaseException:
            unsubscribe()
            raise
        return unsubscribe

    @contextmanager
    def _changing(self) -> Iterator[bool]:
        """Hold the lock; yield whether an earlier change did not complete."""
        with self.lock:
            was_torn, self._is_torn = self._is_torn, True
            yield was_torn
            self._is_torn = False

    def _restart(self) -> None:
        self._has_followed = True
        self._forget()
        if self._listeners:
            self._has_followed = True
            for message in list(self._snapshot()):
                self._tell(message)

    def _forget(self) -> None:
        # Without listeners rows get no numbers, so kept messages would not connect to later ones.
        if not self._has_followed:
            return
        self._has_followed = False
        self._pending.clear()
        self._classification.forget()
        self._recent.clear()
        self._recent_bytes = 0
        if self._recording:
            self._number += 1

    def _classify(self, until_s: float = math.inf) -> None:
        """Classify rows until a time; when that is complete, send the result and all rows."""
        from_ns = self._classification.from_ns
        derived = self._classification.advance(until_s)
        if derived is not None:
            self._publish(derived, from_ns)

    def _publish(self, derived: Tables, from_ns: int = 0) -> None:
        self._number += 1
        self._published_s = time.monotonic()
        rows = [
            *streams(self._pending),
            *((name, derived_stream(name, table)) for name, table in derived.items()),
        ]
        message = self._message(
            tuple(rows), replace_from_ns=dict.fromkeys(derived.keys() - OF_ROWS, from_ns)
        )
        self._pending.clear()
        self._recent.append(message)
        self._recent_bytes += message.nbytes
        while self._recent_bytes > KEPT_BYTES:
            self._recent_bytes -= self._recent.popleft().nbytes
        self._tell(message)

    def _tell(self, message: FeedMessage) -> None:
        for key, listener in list(self._listeners.items()):
            try:
                listener(message)
            except MemoryError:
                raise  # not the listener's fault; it gets a snapshot next time
            except Exception:  # noqa: BLE001 - the recording and the other listeners continue
                self._listeners.pop(key, None)

    def _missed(self, since: int) -> Iterator[FeedMessage]:
        if since == self._number:
            yield self._message(())
        elif any(message.number == since + 1 for message in self._recent):
            yield from (message for message in self._recent if message.number > since)
        else:
            yield from self._snapshot()

    def _snapshot(self) -> Iterator[FeedMessage]:
        tables, initial_events = self._contents()
        if not tables.keys() >= derived_schemas().keys():
            known = self._classification
            derived = known.whole(tables) if known.has_begun else known.restart(tables)
            tables = {**tables, **derived}
        # Names and joins are known before the rows that they are about.
        parts = list(split({**{name: tables[name] for name in OF_ROWS}, **tables}))
        for part, rows in enumerate(parts):
            yield self._message(rows, part, len(parts), initial_events)

    def _message(
        self,
        tables: tuple[tuple[str, bytes], ...],
        part: int = 0,
        parts: int = 0,
        initial_events: int = 0,
        replace_from_ns: Mapping[str, int] | None = None,
    ) -> FeedMessage:
        return FeedMessage(
            self._number,
            tables,
            part,
            parts,
            self._recording,
            self._duration_ns(),
            initial_events,
            replace_from_ns or {},
        )
