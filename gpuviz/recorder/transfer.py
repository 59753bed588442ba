"""Transfer of recorded rows from a session to a store, exactly once."""

import time
from collections import deque
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import batch_of
from gpuviz.data.codes import OWN_THREADS
from gpuviz.data.columns import distinct
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import DEVICE_COLUMNS, REFERENCES, Tables, schemas
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.recorder.feed import Feed
from gpuviz.recorder.host_clocks import clock_snapshot
from gpuviz.recorder.live_statistics import LiveStatistics
from gpuviz.recorder.row_batches import batch, rows_of_pools, thread_rows
from gpuviz.recorder.source import Source

if TYPE_CHECKING:
    from gpuviz import _core
    from gpuviz.recorder.store import Store

Chunk = dict[str, Any]

CLOCKS_INTERVAL_NS = 1_000_000_000
# Interval of samples of the devices' memory.
SAMPLE_NS = 450_000_000

_EVENTS, _SAMPLES = "memory_events", "host_samples"
_NAMED_ONCE = ("pools", "threads", "devices")
_REFERRED_TO = {target for _, _, target in REFERENCES}


class _Begun(NamedTuple):
    """A chunk that is being stored: the first of ``chunks``.

    Attributes:
        table: Its table.
        chunks: The chunks that wait.
        chunk: The chunk.
        rows: The number of rows of the table before it.
    """

    table: str
    chunks: MutableSequence[Chunk]
    chunk: Chunk
    rows: int


class Transfer:
    """Moves rows from a session to a store, a feed and statistics; not thread-safe.

    Any call may fail or be interrupted, and is then repeated with the next drain. Rows that the
    session has given up wait here until they are stored, and what the store has decides which rows
    come next. An id counts as known only when its row is stored, and rows are stored only after the
    rows that they refer to.

    Attributes:
        active_devices: The devices that rows of activities name.
        lost: Events that could not be stored.
        lost_activities: Rows of all other tables that could not be stored.
    """

    def __init__(
        self,
        session: "_core.Session",
        source: Source,
        store: "Store",
        feed: Feed,
        statistics: LiveStatistics,
    ) -> None:
        self._session = session
        self._source = source
        self._store = store
        self._feed = feed
        self._statistics = statistics
        self._resolver = FrameResolver()
        self._known: dict[str, int] = {}
        self._ids_seen: dict[str, set[int]] = {table: set() for table in _NAMED_ONCE}
        self._own_threads: set[int] = set()
        self._streams: list[tuple[Any, ...]] = []
        self._events: deque[Chunk] = deque()
        self._tables: deque[dict[str, list[Chunk]]] = deque()
        self._begun: _Begun | None = None
        self._is_torn = False
        self._initial_events = 0
        self._clocks_due_ns = 0
        self._unrecorded: tuple[tuple[int, int], ...] = ()
        self._sampled_ns = -SAMPLE_NS
        self.active_devices: set[int] = set()
        self.lost = 0
        self.lost_activities = 0

    @property
    def stack_notes(self) -> tuple[str, ...]:
        """A sentence on call stacks without all of their frames; empty if there are none."""
        return self._resolver.notes

    def append_known(self, tables: Tables) -> None:
        """Store tables that are known before the recording."""
        for name, table in tables.items():
            self._known[name] = table.num_rows
            for part in table.to_batches():
                ids = part["id"].to_pylist() if name in self._ids_seen else ()
                self._keep(name, part, ids=ids)

    def take(self) -> None:
        """Take all rows out of the session."""
        self._events.extend(self._session.take(flush=True))
        self._tables.append(self._session.take_tables(flush=True))

    def append_names(self) -> None:
        """Store the strings, streams and call stacks to which the rows taken refer."""
        self._resume()
        self._append_strings()
        self._append_streams()
        self._append_stacks()

    @property
    def waits(self) -> bool:
        """Whether rows that were taken are not stored."""
        return bool(self._events or self._tables)

    @property
    def is_stuck(self) -> bool:
        """Whether the next chunk has to wait for the next drain."""
        return self._begun is not None

    def append_next(self) -> int:
        """Store the next chunk that waits, and return its number of events.

        If that raises an Exception, the chunk is lost, which is counted, unless others refer to its
        rows; it then waits for the next drain, as `is_stuck` shows.
        """
        self._resume()
        begun = self._begun = self._begun or self._next()
        if begun is None:
            return 0
        try:
            if not self._is_stored(begun):
                self._append_rows(begun.table, begun.chunk)
        except Exception:
            if not self._is_stored(begun) and begun.table not in _REFERRED_TO:
                self._lose(begun)
            raise
        self._remove(begun)
        return _length(begun.chunk) if begun.table == _EVENTS else 0

    def give_up(self) -> None:
        """Count the rows that still wait as lost."""
        while self.waits:
            begun = self._begun or self._next()
            if begun is not None:
                self._lose(begun)

    def end_initial_events(self) -> int:
        """Treat all events so far as initial events, and return their number."""
        self._initial_events = self._store.rows(_EVENTS)
        self._statistics.begin()
        return self._initial_events

    def append_devices(self, *, is_last: bool) -> None:
        """Store new devices, and samples of their memory when they are due, and at the end."""
        self._resume()
        self._append_new("devices", self._source.devices(self.active_devices))
        now = time.monotonic_ns()
        if is_last or now - self._sampled_ns >= SAMPLE_NS:
            self._sampled_ns = now
            time_ns = self._session.since_start(self._source.now_ns() or now)
            samples = self._source.sample()
            rows = [{"time": time_ns, "device": device, "used": used} for device, used in samples]
            self._append("device_memory", rows)
            self._statistics.take_used(dict(samples))

    def append_unrecorded(self, spans: Sequence[tuple[int, int]]) -> None:
        """Store when streams were not recorded: spans that are new, and that have ended."""
        self._resume()
        rows = [
            {"id": number, "time": span[0], "end": span[1], "settled": 0}
            for number, span in enumerate(spans, 1)
            if span not in self._unrecorded
        ]
        self._append("unrecorded_spans", rows)
        self._unrecorded = tuple(spans)
        self._statistics.take_unrecorded(self._unrecorded)

    def append_held(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store what holds the memory in use at the end."""
        self._append("held_blocks", rows)

    def append_clocks(self, *, is_last: bool) -> None:
        """Store a snapshot of the clocks if one is due, and at the end."""
        start_ns = self._session.start_ns
        if start_ns and (is_last or time.monotonic_ns() >= self._clocks_due_ns):
            snapshot = clock_snapshot(start_ns)
            self._append("clock_snapshots", [snapshot])
            self._clocks_due_ns = start_ns + snapshot["time"] + CLOCKS_INTERVAL_NS

    def _resume(self) -> None:
        """Learn what is known from what is stored, if a step did not complete."""
        if not self._is_torn:
            return
        tables, initial_events = self._store.contents()
        if initial_events is None:
            initial_events = self._initial_events
        self._ids_seen = {name: set(tables[name]["id"].to_pylist()) for name in _NAMED_ONCE}
        self._own_threads = _own_threads(tables["threads"].to_pylist())
        self._feed.invalidate()
        self._is_torn = False
        self._statistics.resume(tables, initial_events)

    def _rows(self, table: str) -> int:
        """Return the number of stored rows that the session has named."""
        return self._store.rows(table) - self._known.get(table, 0)

    def _append_strings(self) -> None:
        first = self._rows("strings") + 1
        texts = self._session.strings(first)
        self._append(
            "strings", [{"id": number, "text": text} for number, text in enumerate(texts, first)]
        )

    def _append_streams(self) -> None:
        self._streams.extend(self._session.changed_streams())
        self._append("streams", [stream_row(*row) for row in self._streams])
        self._streams.clear()

    def _append_stacks(self) -> None:
        self._resolver.continue_after(self._rows("stacks"), self._rows("frames"))
        first = self._resolver.next_stack
        stacks = self._session.new_stacks(first)
        marks = (self._session.marks_of(stack) for stack in range(first, first + len(stacks)))
        stack_rows, frame_rows = self._resolver.resolve(stacks, marks)
        self._append("frames", frame_rows)
        self._append("stacks", stack_rows)

    def _next(self) -> _Begun | None:
        if self._events:
            return _Begun(_EVENTS, self._events, self._events[0], self._store.rows(_EVENTS))
        for table, chunks in self._tables[0].items():
            if chunks:
                return _Begun(table, chunks, chunks[0], self._store.rows(table))
        self._tables.popleft()
        return None

    def _is_stored(self, begun: _Begun) -> bool:
        return self._store.rows(begun.table) > begun.rows

    def _remove(self, begun: _Begun) -> None:
        if begun.chunks and begun.chunks[0] is begun.chunk:
            del begun.chunks[0]
        self._begun = None

    def _lose(self, begun: _Begun) -> None:
        if begun.table == _EVENTS:
            self.lost += _length(begun.chunk)
        else:
            self.lost_activities += _length(begun.chunk)
        self._remove(begun)

    def _append_rows(self, table: str, chunk: Chunk) -> None:
        if table == _EVENTS:
            self._append_named("pools", chunk["pool"], partial(rows_of_pools, source=self._source))
        for column in ("thread", "holder"):
            if column in chunk:
                self._append_named("threads", chunk[column], thread_rows)
        if table == _SAMPLES:
            chunk = self._of_program(chunk)
        if table != _EVENTS:
            self.active_devices |= _devices_of(chunk)
        self._keep(table, batch(table, chunk), chunk)

    def _of_program(self, chunk: Chunk) -> Chunk:
        """Return the rows that are not of gpuviz's own threads, which only collect garbage."""
        is_own = np.isin(chunk["thread"], list(self._own_threads))
        return {name: values[~is_own] for name, values in chunk.items()}

    def _append_named(
        self,
        table: str,
        ids: np.ndarray[Any, np.dtype[np.uint32]],
        rows_of: Callable[[list[int]], list[dict[str, Any]]],
    ) -> None:
        new = sorted(_distinct(ids) - self._ids_seen[table])
        if new:
            self._append_new(table, rows_of(new))

    def _append_new(self, table: str, rows: list[dict[str, Any]]) -> None:
        seen = self._ids_seen[table]
        new = [row for row in rows if row["id"] not in seen]
        if not new:
            return
        self._keep(table, batch_of(new, schemas()[table]), ids=[row["id"] for row in new])
        if table == "threads":
            self._own_threads |= _own_threads(new)
        if table == "devices":
            self._statistics.take_total({row["id"]: row["total_memory"] for row in new})

    def _append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._keep(table, batch_of(rows, schemas()[table]))

    def _keep(
        self,
        table: str,
        batch: pa.RecordBatch,
        chunk: Chunk | None = None,
        ids: Sequence[int] = (),
    ) -> None:
        """Append rows to the store, and then to what depends on it."""
        was_torn, self._is_torn = self._is_torn, True
        with self._feed.lock:
            self._store.append(table, batch)
            self._feed.take(table, batch)
        if chunk is not None:
            self._statistics.take(table, chunk)
        if ids:
            self._ids_seen[table].update(ids)
        self._is_torn = was_torn


def _length(chunk: Chunk) -> int:
    return len(next(iter(chunk.values())))


def _own_threads(rows: Sequence[Mapping[str, Any]]) -> set[int]:
    return {row["id"] for row in rows if row["name"].startswith(OWN_THREADS)}


def _devices_of(chunk: Mapping[str, np.ndarray[Any, Any]]) -> set[int]:
    columns = (chunk[name] for name in DEVICE_COLUMNS if name in chunk)
    return {device for column in columns for device in _distinct(column) if device >= 0}


def _distinct(ids: np.ndarray[Any, np.dtype[np.uint32]]) -> set[int]:
    # Usually all events are of one thread and one pool.
    if ids.size and (ids == ids[0]).all():
        return {int(ids[0])}
    return set(distinct(ids).tolist())
