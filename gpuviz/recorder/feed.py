"""Sends recorded batches to subscribers during the recording."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from gpuviz.recorder.live_classification import LiveClassification
from gpuviz.recording.derived import schemas as derived_schemas

if TYPE_CHECKING:
    import pyarrow as pa

# Without rows, listeners only hear that the recording goes on.
SILENCE_S = 0.9
# What a listener may ask for again without being given everything from the start.
KEPT_BYTES = 32 << 20
# A part of a snapshot holds about this many bytes.
PART_BYTES = 8 << 20


@dataclass(frozen=True)
class FeedMessage:
    """What was recorded since the message before, or everything until now.

    Attributes:
        number: One more than that of the message before. A snapshot has the number of the last
            message that it makes up for.
        tables: Names of tables and their rows, each as an Arrow IPC stream, in order.
        part: Which part of a snapshot it is; the first one replaces all that was known.
        parts: In how many parts a snapshot comes; 0: this is no snapshot.
        recording: Whether more may follow.
        duration_ns: Nanoseconds since the recording began.
        initial_events: How many leading events describe what was there before.
        replace_from_ns: Names of derived tables, and from when on their rows that were sent before
            no longer hold.
    """

    number: int
    tables: "tuple[tuple[str, bytes], ...]"
    part: int
    parts: int
    recording: bool
    duration_ns: int
    initial_events: int
    replace_from_ns: Mapping[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(len(stream) for _, stream in self.tables)


Listener = Callable[[FeedMessage], None]
Contents = Callable[[], "tuple[Mapping[str, pa.Table], int]"]


class Feed:
    """Numbers what a pump stores, and hands it to listeners; any thread may call it.

    Listeners are called one after the other, mostly on the pump's thread, and must not block. One
    that raises hears nothing more.

    Attributes:
        lock: Held by whoever stores rows, until they are taken here too.

    Args:
        contents: Returns everything stored so far, and how many leading events describe what was
            there before the recording.
        duration_ns: Returns nanoseconds since the recording began.
        classification: Makes the derived tables of a recording that goes on.
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

    @property
    def listeners(self) -> int:
        """How many listeners there are."""
        return len(self._listeners)

    def take(self, table: str, batch: "pa.RecordBatch") -> None:
        """Take rows that have just been stored."""
        with self.lock:
            if self._listeners:
                self._pending.append((table, batch))
                self._classification.take(table, batch)

    def publish(self) -> None:
        """Hand what was taken since the last call to all listeners, as one message.

        Where nothing was, there is a message only every `SILENCE_S`.
        """
        with self.lock:
            silent_s = time.monotonic() - self._published_s
            is_due = self._classification.is_due()
            if self._listeners and (self._pending or is_due or silent_s >= SILENCE_S):
                self._publish(classify=is_due)

    def restart(self) -> None:
        """Give all listeners everything anew; nothing that they know need hold any more."""
        with self.lock:
            self._forget()
            for message in list(self._snapshot()):
                self._tell(message)

    def close(self) -> None:
        """Say that nothing more follows."""
        with self.lock:
            self._recording = False
            if self._listeners:
                self._publish(classify=True)
            self._listeners.clear()

    def subscribe(self, listener: Listener, since: int = -1) -> Callable[[], None]:
        """Give a listener what follows a message, or everything, and then all that comes.

        Args:
            listener: Is called with each message, first from within this call.
            since: The number of the last message it has; -1 if none.

        Returns:
            What ends it; to be called any number of times.
        """
        key = object()
        with self.lock:
            if self._listeners:
                # A snapshot has the derived tables of all rows: so must those who listen already.
                self._publish(classify=True)
            for message in list(self._missed(since)):
                listener(message)
            if self._recording:
                self._listeners[key] = listener

        def unsubscribe() -> None:
            with self.lock:
                if self._listeners.pop(key, None) is not None and not self._listeners:
                    self._forget()

        return unsubscribe

    def _forget(self) -> None:
        # What was kept does not lead up to what follows: without a listener nothing is numbered.
        self._pending.clear()
        self._classification.forget()
        self._recent.clear()
        self._recent_bytes = 0
        if self._recording:
            self._number += 1

    def _publish(self, *, classify: bool) -> None:
        self._number += 1
        self._published_s = time.monotonic()
        from_ns = self._classification.from_ns
        derived = self._classification.update() if classify else {}
        rows = [
            *streams(self._pending),
            *(
                (name, stream(table.to_batches() or _empty(table)))
                for name, table in derived.items()
            ),
        ]
        message = self._message(tuple(rows), replace_from_ns=dict.fromkeys(derived, from_ns))
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
            except Exception:  # noqa: BLE001 - the recording and the other listeners go on
                self._listeners.pop(key, None)

    def _missed(self, since: int) -> "Iterator[FeedMessage]":
        if since == self._number:
            yield self._message(())
        elif any(message.number == since + 1 for message in self._recent):
            yield from (message for message in self._recent if message.number > since)
        else:
            yield from self._snapshot()

    def _snapshot(self) -> "Iterator[FeedMessage]":
        tables, initial_events = self._contents()
        if not tables.keys() >= derived_schemas().keys():
            known = self._classification
            derived = known.whole(tables) if known.has_begun else known.restart(tables)
            tables = {**tables, **derived}
        parts = list(split(tables))
        for part, rows in enumerate(parts):
            yield self._message(rows, part, len(parts), initial_events)

    def _message(
        self,
        tables: "tuple[tuple[str, bytes], ...]",
        part: int = 0,
        parts: int = 0,
        initial_events: int = 0,
        replace_from_ns: "Mapping[str, int] | None" = None,
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


def streams(batches: "list[tuple[str, pa.RecordBatch]]") -> "Iterator[tuple[str, bytes]]":
    """Yield each table that occurs with its rows as one Arrow IPC stream."""
    by_table: dict[str, list[pa.RecordBatch]] = {}
    for table, batch in batches:
        by_table.setdefault(table, []).append(batch)
    for table, parts in by_table.items():
        yield table, stream(parts)


def stream(batches: "list[pa.RecordBatch]") -> bytes:
    """Return batches of one table as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    if len(batches) > 1:
        # A dictionary may differ from batch to batch; one of its own needs no replacing.
        whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
        batches = whole.to_batches() or batches[:1]
    with pa.ipc.new_stream(sink, batches[0].schema, options=_options()) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@cache
def _options() -> "pa.ipc.IpcWriteOptions":
    import pyarrow as pa

    # Asked for once: the defaults are read from environment variables each time.
    return pa.ipc.IpcWriteOptions()


def _empty(table: "pa.Table") -> "list[pa.RecordBatch]":
    import pyarrow as pa

    return [pa.RecordBatch.from_pylist([], table.schema)]


def split(
    tables: "Mapping[str, pa.Table]",
) -> "Iterator[tuple[tuple[str, bytes], ...]]":
    """Yield all rows of all tables in parts of a bounded size; at least one part."""
    part: list[tuple[str, bytes]] = []
    size = 0
    for name, table in tables.items():
        if table.num_rows == 0:
            continue
        rows = max(1, int(table.num_rows * PART_BYTES / max(table.nbytes, 1)))
        for batch in table.combine_chunks().to_batches(max_chunksize=rows):
            if size >= PART_BYTES:
                yield tuple(part)
                part, size = [], 0
            part.append((name, stream([batch])))
            size += len(part[-1][1])
    yield tuple(part)
