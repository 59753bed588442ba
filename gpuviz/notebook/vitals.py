"""The few numbers of a recorder that a glance should tell, kept up batch by batch."""

from typing import TYPE_CHECKING, Any

from gpuviz._core import MemoryState
from gpuviz.analysis.state import memory_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.recorder.feed import FeedMessage


class Vitals:
    """Memory of each device and how busy it was, from the messages of a recorder's feed.

    A message costs in proportion to its own rows, however long the recording is.
    """

    def __init__(self) -> None:
        self._state = MemoryState()
        self._busy: dict[int, _Busy] = {}
        self._counted_ns = 0
        self._duration_ns = 0
        self._initial_left = 0

    def take(self, message: "FeedMessage") -> None:
        """Take the next message; the first part of a snapshot replaces all that was known."""
        if message.parts and message.part == 0:
            self._state, self._busy, self._counted_ns = MemoryState(), {}, 0
            self._initial_left = message.initial_events
        self._duration_ns = max(self._duration_ns, message.duration_ns)
        for name, rows in message.tables:
            if name == "memory_events":
                self._take_events(_table(rows))
            elif name == "activities":
                self._take_activities(_table(rows))

    def read(self) -> list[dict[str, Any]]:
        """Return a row for each device.

        Keys: ``device``; ``allocated``, ``peak``, ``reserved`` in bytes; ``busy``, the share from 0
        to 1 of the time since the last call, None if no activity was ever recorded.
        """
        span = max(self._duration_ns - self._counted_ns, 1)
        self._counted_ns = self._duration_ns
        rows = []
        for device in sorted({*self._state.devices(), *self._busy}):
            stats = self._state.statistics(device)
            busy = self._busy.get(device)
            rows.append(
                {
                    "device": device,
                    "allocated": stats["allocated_bytes.all.current"],
                    "peak": stats["allocated_bytes.all.peak"],
                    "reserved": stats["reserved_bytes.all.current"],
                    "busy": None if busy is None else min(1.0, busy.read() / span),
                }
            )
        return rows

    def _take_events(self, events: "pa.Table") -> None:
        columns = memory_columns(events)
        initial = min(self._initial_left, events.num_rows)
        if initial:
            self._state.apply(columns, 0, initial)
            self._state.forget_the_past()
            self._initial_left -= initial
        self._state.apply(columns, initial)

    def _take_activities(self, activities: "pa.Table") -> None:
        import numpy as np
        import pyarrow.compute as pc

        # A range on a stream is the time between two events, whatever ran then.
        activities = activities.filter(pc.not_equal(activities["kind"].cast("string"), "range"))
        devices = activities["device"].to_numpy()
        starts, ends = (activities[name].to_numpy() for name in ("time", "end"))
        for device in np.unique(devices).tolist():
            here = devices == device
            self._busy.setdefault(device, _Busy()).add(starts[here], ends[here])


class _Busy:
    """The union of intervals that come roughly in order."""

    def __init__(self) -> None:
        self._until = 0
        self._busy_ns = 0

    def add(self, starts: Any, ends: Any) -> None:
        import numpy as np

        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        # An interval counts from where all before it have ended.
        before = np.maximum(np.concatenate([[self._until], ends[:-1]]), self._until)
        self._busy_ns += int(np.maximum(ends - np.maximum(starts, before), 0).sum())
        self._until = max(self._until, int(ends[-1]))

    def read(self) -> int:
        busy, self._busy_ns = self._busy_ns, 0
        return busy


def _table(rows: bytes) -> "pa.Table":
    import pyarrow as pa

    with pa.ipc.open_stream(rows) as stream:
        return stream.read_all()
