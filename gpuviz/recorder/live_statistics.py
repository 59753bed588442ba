"""Incremental statistics of a recording in progress."""

import threading
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from gpuviz._core import BusyTimes, MemoryColumns, MemoryState
from gpuviz.analysis.calls import ON_DEVICE
from gpuviz.data.columns import codes, plain
from gpuviz.data.memory_columns import NUMBER_COLUMNS
from gpuviz.data.tables import DICTIONARIES, Tables
from gpuviz.recorder.status import DeviceStatistics, RecorderStatistics, RecorderStatus

Columns = Mapping[str, np.ndarray]

Listener = Callable[[], None]

# Interval of new statistics, the same for all listeners.
INTERVAL_NS = 900_000_000
LATELY_NS = 1_000_000_000
MARK_NS = 100_000_000

_KINDS = DICTIONARIES["activities", "kind"]
_COPIES_WITH_HOST = np.array(
    [kind not in ON_DEVICE for kind in DICTIONARIES["activities", "copy_kind"]]
)
_EVENT_COLUMNS = ("action", "framework", *NUMBER_COLUMNS)


_ACTIVITY_COLUMNS = ("time", "end", "kind", "copy_kind", "device")


class LiveStatistics:
    """Memory and busy time of each device, from the batches that a pump stores; thread-safe.

    The cost of a batch depends only on its own rows, and reading the statistics is independent of
    the length of the recording; see `gpuviz._core.BusyTimes` for activities that arrive late. Peaks
    exclude the time before the recording. Events discarded as the oldest still count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Listener] = {}
        self.restart()

    def abandon_after_fork(self) -> None:
        """Remove all listeners in the child of a fork; a missing thread may hold the lock."""
        self._lock = threading.Lock()
        self._listeners.clear()

    def restart(self) -> None:
        """Discard everything except the listeners."""
        with self._lock:
            self._events = 0
            self._state = MemoryState()
            self._busy = BusyTimes()
            self._lately: dict[int, _Lately] = {}
            self._total: dict[int, int] = {}
            self._used: dict[int, int] = {}
            self._unrecorded: tuple[tuple[int, int], ...] = ()
            self._latest: RecorderStatistics | None = None

    def take(self, table: str, columns: Columns) -> None:
        """Add rows of a table; dictionary columns contain codes, as in `DICTIONARIES`."""
        with self._lock:
            if table == "memory_events":
                self._events += len(columns["time"])
                self._state.apply(MemoryColumns(**{name: columns[name] for name in _EVENT_COLUMNS}))
            elif table == "activities":
                self._take_activities(columns)

    def resume(self, tables: Tables, initial_events: int) -> None:
        """Replace all rows taken so far, after a `take` that did not complete.

        Args:
            tables: The rows.
            initial_events: Number of initial events at the start of ``memory_events``.
        """
        events = tables["memory_events"]
        with self._lock:
            self._events = 0
            self._state = MemoryState()
            self._busy = BusyTimes()
        self.take("memory_events", columns_of("memory_events", events.slice(0, initial_events)))
        self.begin()
        self.take("memory_events", columns_of("memory_events", events.slice(initial_events)))
        self.take("activities", columns_of("activities", tables["activities"]))

    def take_total(self, total: Mapping[int, int]) -> None:
        """Set the total memory of devices in bytes."""
        with self._lock:
            self._total.update(total)

    def take_used(self, used: Mapping[int, int]) -> None:
        """Set the memory in use by all processes, by device, in bytes."""
        with self._lock:
            self._used.update(used)

    def take_unrecorded(self, spans: tuple[tuple[int, int], ...]) -> None:
        """Set when streams were not recorded, in ns; -1 as the end of a span that lasts."""
        with self._lock:
            self._unrecorded = spans

    def begin(self) -> None:
        """Treat all events so far as initial events."""
        with self._lock:
            self._events = 0
            self._state.forget_the_past()

    @property
    def latest(self) -> RecorderStatistics | None:
        """The statistics of the last `read`; None before the first."""
        return self._latest

    def is_due(self, time_ns: int) -> bool:
        """Return whether listeners should get new statistics; to be called regularly.

        Args:
            time_ns: Now, on the time axis of the recording.
        """
        with self._lock:
            for device in self._busy.devices():
                busy_ns = self._busy.of(device)["busy_ns"]
                self._lately.setdefault(device, _Lately()).mark(time_ns, busy_ns)
        is_due = self._latest is None or time_ns - self._latest.time_ns >= INTERVAL_NS
        return is_due and bool(self._listeners)

    def read(self, time_ns: int, status: RecorderStatus) -> RecorderStatistics:
        """Compute the current statistics, and notify all listeners.

        Args:
            time_ns: Now, on the time axis of the recording.
            status: Counts and costs at that time.
        """
        with self._lock:
            seen = {*self._total, *self._state.devices(), *self._busy.devices()}
            devices = tuple(self._device(device, time_ns) for device in sorted(seen))
            self._latest = RecorderStatistics(time_ns, self._events, status, devices)
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener()
        return self._latest

    def follow(self, listener: Listener) -> Callable[[], None]:
        """Call a listener, which must neither block nor raise, after each `read`.

        Returns:
            A function that ends this; it may be called repeatedly.
        """
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def end() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return end

    def _take_activities(self, activities: Columns) -> None:
        kinds = activities["kind"]
        # A range on a stream is the time between two events; nothing may have run in it.
        is_work = kinds != _KINDS.index("range")
        kernels = kinds == _KINDS.index("kernel")
        copies = (kinds == _KINDS.index("memcpy")) & _COPIES_WITH_HOST[activities["copy_kind"]]
        columns = {name: activities[name] for name in ("time", "end", "device")}
        columns |= {"is_kernel": kernels.view(np.uint8), "is_copy": copies.view(np.uint8)}
        if not is_work.all():
            columns = {name: values[is_work] for name, values in columns.items()}
        self._busy.add(columns)

    def _device(self, device: int, time_ns: int) -> DeviceStatistics:
        parts = self._state.parts(device)
        busy = self._busy.of(device)
        total, used = self._total.get(device), self._used.get(device)
        return DeviceStatistics(
            device=device,
            allocated=parts["allocated"],
            allocated_peak=parts["allocated_peak"],
            reserved=parts["reserved"],
            free=parts["free"],
            inactive_split=parts["inactive_split"],
            largest_free=parts["largest_free"],
            unused=None if not total or used is None else max(0, total - used),
            unrecorded_ns=self._unrecorded_ns(busy["start_ns"], busy["end_ns"]),
            lately_busy=self._lately_busy(device, time_ns),
            **busy,
        )

    def _lately_busy(self, device: int, time_ns: int) -> float | None:
        if device not in self._busy.devices() or self._unrecorded_ns(time_ns - LATELY_NS, time_ns):
            return None
        busy_ns = self._busy.of(device)["busy_ns"]
        return self._lately.setdefault(device, _Lately()).share(time_ns, busy_ns)

    def _unrecorded_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of a time streams were not recorded."""
        return sum(
            max(min(end_ns, end_ns if end < 0 else end) - max(start_ns, begin), 0)
            for begin, end in self._unrecorded
        )


class _Lately:
    """Busy share of a device in the last second, from earlier busy times."""

    def __init__(self) -> None:
        self._known = deque([(0, 0)])

    def mark(self, time_ns: int, busy_ns: int) -> None:
        if time_ns - self._known[-1][0] >= MARK_NS:
            self._known.append((time_ns, busy_ns))
        while len(self._known) > 1 and self._known[1][0] <= time_ns - LATELY_NS:
            self._known.popleft()

    def share(self, time_ns: int, busy_ns: int) -> float:
        self.mark(time_ns, busy_ns)
        before_ns, before_busy_ns = self._known[0]
        return min(1.0, max(0, busy_ns - before_busy_ns) / max(time_ns - before_ns, 1))


def columns_of(table: str, rows: pa.Table) -> Columns:
    """Return the columns of ``memory_events`` or ``activities`` for `LiveStatistics.take`."""
    names = _EVENT_COLUMNS if table == "memory_events" else _ACTIVITY_COLUMNS
    return {
        name: codes(rows[name], DICTIONARIES[table, name])
        if (table, name) in DICTIONARIES
        else plain(rows[name])
        for name in names
    }
