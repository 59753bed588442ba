"""The thread that moves recorded columns of a session into a store."""

import threading
import time
from collections import deque
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.pools import RMM_OWNER, TORCH_OWNER
from gpuviz.data.arrays import batch_of, numbers, texts
from gpuviz.data.columns import distinct
from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import host_memories
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import DEVICE_COLUMNS, DICTIONARIES, schemas
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.recorder.device_links import device_links
from gpuviz.recorder.host_clocks import clock_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from gpuviz import _core
    from gpuviz.recorder.feed import Feed
    from gpuviz.recorder.live_statistics import LiveStatistics
    from gpuviz.recorder.source import Source
    from gpuviz.recorder.store import Store

# A killed process loses the events since the last drain: those of half a second, and early in a
# recording those of half its time, or of its last 20 ms. docs/files.md says so.
INTERVAL_S = 0.5
FIRST_INTERVAL_S = 0.02
# While a view is visible; longer if draining takes more than this share of the time.
WATCHED_INTERVAL_S = 0.1
MOST_OF_TIME = 0.008
CLOCKS_INTERVAL_NS = 1_000_000_000
# Interval of samples of the devices' memory.
SAMPLE_NS = 450_000_000


class Pace:
    """Chooses the pause between drains so that they take at most `MOST_OF_TIME`.

    Args:
        shortest_s: The shortest pause, in seconds.
        longest_s: The longest pause, even if draining then takes more of the time.
    """

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._mean_s = 0.0
        self._last_s = 0.0

    def took(self, seconds: float) -> None:
        """Add the duration of a drain; single outliers are ignored."""
        self._mean_s += (min(seconds, self._last_s) - self._mean_s) / 4
        self._last_s = seconds

    @property
    def interval_s(self) -> float:
        """The pause before the next drain, in seconds."""
        return min(max(self._mean_s / MOST_OF_TIME, self._shortest_s), self._longest_s)


def pause_s(elapsed_s: float, usual_s: float) -> float:
    """Return the pause before the next drain, in seconds: at first as long as the recording is.

    Args:
        elapsed_s: Time since the start of the recording.
        usual_s: The pause later on.
    """
    return min(usual_s, max(elapsed_s, FIRST_INTERVAL_S))


class Pump:
    """Drains a session on its own thread, twice a second, or ten times while a view is visible.

    In the first second it drains more often, because short programs are killed too.

    Stored rows also go to ``feed``. Errors never stop the pump: what could not be stored is counted
    and noted. ``before_drain`` is called before each drain, to let sources that must be polled add
    to the session; ``before_publish`` after all rows are stored and before ``feed`` sends them.

    Attributes:
        cpu_ns: CPU time of draining, on any thread.
        lost: Events that were drained but could not be stored.
        lost_activities: Rows of all other tables that were drained but could not be stored.
        notes: Errors, one sentence for each kind.
    """

    def __init__(  # noqa: PLR0913 - the ends between which it moves rows
        self,
        session: "_core.Session",
        source: "Source",
        store: "Store",
        feed: "Feed",
        statistics: "LiveStatistics",
        *,
        before_drain: "Callable[[], None]" = lambda: None,
        before_publish: "Callable[[], None]" = lambda: None,
    ) -> None:
        self._session = session
        self._before_drain = before_drain
        self._before_publish = before_publish
        self._source = source
        self._store = store
        self._feed = feed
        self._statistics = statistics
        self._resolver = FrameResolver()
        self._strings_seen = 0
        self._clocks_due_ns = 0
        self._sampled_ns = -SAMPLE_NS
        self._ids_seen: dict[str, set[int]] = {"pools": set(), "threads": set(), "devices": set()}
        self._active_devices: set[int] = set()
        self._lock = threading.Lock()
        self._stopping = False
        self._stopped = False
        self._woken = threading.Event()
        # ipykernel 7.0 needs the context of a cell to send a message.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._run,),
            name="gpuviz-pump",
            daemon=True,
        )
        self.cpu_ns = 0
        self.lost = 0
        self.lost_activities = 0
        self.notes: list[str] = []

    @property
    def stack_notes(self) -> tuple[str, ...]:
        """A sentence on call stacks without all of their frames; empty if there are none."""
        return self._resolver.notes

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Drain the rest and end the thread; the session must have stopped before."""
        self._stopping = True
        self.wake()
        self._thread.join()
        self._clocks_due_ns = 0
        self.drain()
        with self._lock:
            self._stopped = True

    def wake(self) -> None:
        """Drain immediately, and update the pace, because a view may have become visible."""
        self._woken.set()

    def device_links(self) -> dict[str, list[dict[str, int]]]:
        """Return what joins the devices of the recording, for its manifest."""
        with self._noting("The links between the devices could not be queried"):
            return device_links(self._source.devices(self._active_devices))
        return {}

    def abandon_after_fork(self) -> None:
        """Drain nothing from now on, in the child of a fork; a missing thread may hold the lock."""
        self._lock = threading.Lock()
        self._stopped = True

    def append_known(self, tables: "Mapping[str, pa.Table]") -> None:
        """Store tables that are known before the recording."""
        for name, table in tables.items():
            for batch in table.to_batches():
                self._keep(name, batch)
            if name in self._ids_seen:
                self._ids_seen[name].update(table["id"].to_pylist())

    def drain(self) -> int:
        """Move everything from the session to the store, and return the number of events."""
        with self._lock:
            if self._stopped:
                return 0
            began = time.thread_time_ns()
            try:
                return self._drain()
            finally:
                self.cpu_ns += time.thread_time_ns() - began

    def _run(self) -> None:
        pace = Pace(WATCHED_INTERVAL_S, INTERVAL_S)
        started = time.monotonic()
        while True:
            usual_s = pace.interval_s if self._feed.listeners else INTERVAL_S
            self._woken.wait(pause_s(time.monotonic() - started, usual_s))
            self._woken.clear()
            if self._stopping:
                return
            began = time.thread_time()
            self.drain()
            pace.took(time.thread_time() - began)

    def _drain(self) -> int:
        with self._noting("Ranges on streams could not be polled"):
            self._before_drain()
        chunks = deque(self._session.take(flush=True))
        tables = self._session.take_tables(flush=True)
        moved = 0
        with self._noting("Events could not be stored"):
            try:
                self._append_names()
                while chunks:
                    self._append_events(chunks[0])
                    moved += len(chunks.popleft()["time"])
            finally:
                self.lost += sum(len(chunk["time"]) for chunk in chunks)
        with self._noting("Activities could not be stored"):
            self._append_tables(tables)
        with self._noting("The devices could not be queried"):
            self._append_new("devices", self._source.devices(self._active_devices))
            self._append_device_memory()
        with self._noting("The clocks could not be read"):
            self._append_clocks()
        with self._noting("Events could not be written"):
            self._store.flush()
        with self._noting("The numbers could not be read"):
            self._before_publish()
        self._feed.publish()
        return moved

    @contextmanager
    def _noting(self, what: str) -> "Iterator[None]":
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the recorded program must continue
            note = f"{what}: {type(error).__name__}: {error}"
            if all(not known.startswith(what) for known in self.notes):
                self.notes.append(note)

    def _append_names(self) -> None:
        # Rows of referenced tables are written before the rows that refer to them.
        self._append_strings()
        self._append_streams()
        self._append_stacks()

    def _append_events(self, chunk: "dict[str, Any]") -> None:
        self._append_named("pools", chunk["pool"], self._pool_rows)
        self._append_named("threads", chunk["thread"], thread_rows)
        self._keep("memory_events", batch("memory_events", chunk))
        self._statistics.take("memory_events", chunk)

    def _pool_rows(self, ids: list[int]) -> list[dict[str, Any]]:
        own = [pool for pool in ids if pool // 2 < RMM_OWNER]
        of_rmm = [pool for pool in ids if pool // 2 == RMM_OWNER]
        of_torch = [pool for pool in ids if pool // 2 >= TORCH_OWNER]
        return [
            *pool_rows(own, self._source.framework, self._source.memory),
            *pool_rows(of_rmm, "rmm"),
            *pool_rows(of_torch, "torch", "device"),
        ]

    def _append_tables(self, tables: "dict[str, list[dict[str, Any]]]") -> None:
        chunks = deque((name, chunk) for name, parts in tables.items() for chunk in parts)
        try:
            while chunks:
                name, chunk = chunks[0]
                if "thread" in chunk:
                    self._append_named("threads", chunk["thread"], thread_rows)
                self._active_devices |= _devices_of(chunk)
                self._keep(name, batch(name, chunk))
                self._statistics.take(name, chunk)
                chunks.popleft()
        finally:
            self.lost_activities += sum(len(next(iter(chunk.values()))) for _, chunk in chunks)

    def _append_strings(self) -> None:
        texts = self._session.strings(self._strings_seen + 1)
        self._append(
            "strings",
            [
                {"id": number, "text": text}
                for number, text in enumerate(texts, self._strings_seen + 1)
            ],
        )
        self._strings_seen += len(texts)

    def _append_streams(self) -> None:
        self._append("streams", [stream_row(*row) for row in self._session.changed_streams()])

    def _append_stacks(self) -> None:
        stacks = self._session.new_stacks(self._resolver.next_stack)
        stack_rows, frame_rows = self._resolver.resolve(stacks)
        self._append("frames", frame_rows)
        self._append("stacks", stack_rows)

    def _append_device_memory(self) -> None:
        now = time.monotonic_ns() - self._session.start_ns
        if self._stopping or now - self._sampled_ns >= SAMPLE_NS:
            self._sampled_ns = now
            samples = self._source.sample()
            rows = [{"time": now, "device": device, "used": used} for device, used in samples]
            self._append("device_memory", rows)
            self._statistics.take_used(dict(samples))

    def _append_clocks(self) -> None:
        if time.monotonic_ns() >= self._clocks_due_ns:
            snapshot = clock_snapshot(self._session.start_ns)
            self._append("clock_snapshots", [snapshot])
            self._clocks_due_ns = self._session.start_ns + snapshot["time"] + CLOCKS_INTERVAL_NS

    def _append_new(self, table: str, rows: list[dict[str, Any]]) -> None:
        seen = self._ids_seen[table]
        new = [row for row in rows if row["id"] not in seen]
        self._append(table, new)
        seen.update(row["id"] for row in new)
        if table == "devices" and new:
            self._statistics.take_total({row["id"]: row["total_memory"] for row in new})

    def _append_named(
        self,
        table: str,
        ids: "np.ndarray[Any, np.dtype[np.uint32]]",
        rows_of: "Callable[[list[int]], list[dict[str, Any]]]",
    ) -> None:
        new = sorted(_distinct(ids) - self._ids_seen[table])
        if new:
            self._append_new(table, rows_of(new))

    def _append(self, table: str, rows: "Sequence[Mapping[str, Any]]") -> None:
        if rows:
            self._keep(table, batch_of(rows, schemas()[table]))

    def _keep(self, table: str, batch: "pa.RecordBatch") -> None:
        with self._feed.lock:
            self._store.append(table, batch)
            self._feed.take(table, batch)


def import_libraries() -> None:
    """Import pyarrow and NumPy, as later it would happen during the recording."""
    batch_of([], schemas()["threads"])


def batch(table: str, chunk: "dict[str, Any]") -> "pa.RecordBatch":
    """Return the columns of a native chunk as a batch of ``table``, without copying."""
    import pyarrow as pa

    schema = schemas()[table]
    if table == "activities":
        names = ("copy_kind", "source", "destination")
        chunk = chunk | {"host_memory": host_memories(*(chunk[name] for name in names))}
    columns = [
        pa.DictionaryArray.from_arrays(
            numbers(chunk[field.name], pa.int8()),
            _words(table, field.name),
            safe=False,
        )
        if (table, field.name) in DICTIONARIES
        else numbers(chunk[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@cache
def _words(table: str, column: str) -> "pa.Array":
    return texts(DICTIONARIES[table, column])


def pool_rows(ids: list[int], framework: str = "", memory: str = "") -> list[dict[str, Any]]:
    """Return a row of ``pools`` for each id; see `gpuviz.data.tables`."""
    return [
        {
            "id": pool,
            "owner": pool // 2,
            "segment_type": "large" if pool % 2 else "small",
            "framework": framework,
            "memory": memory,
        }
        for pool in ids
    ]


def thread_rows(ids: list[int]) -> list[dict[str, Any]]:
    """Return a row of ``threads`` for each id; threads that have ended are unnamed."""
    names = {thread.native_id: as_unicode(thread.name) for thread in threading.enumerate()}
    return [{"id": thread, "name": names.get(thread, "")} for thread in ids]


def _devices_of(chunk: "Mapping[str, np.ndarray[Any, Any]]") -> set[int]:
    columns = (chunk[name] for name in DEVICE_COLUMNS if name in chunk)
    return {device for column in columns for device in _distinct(column) if device >= 0}


def _distinct(ids: "np.ndarray[Any, np.dtype[np.uint32]]") -> set[int]:
    # Usually all events are of one thread and one pool.
    if ids.size and (ids == ids[0]).all():
        return {int(ids[0])}
    return set(distinct(ids).tolist())
