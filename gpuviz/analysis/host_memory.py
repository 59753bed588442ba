"""`HostMemory`: the pinned host memory of a recording."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.initial_events import initial_events
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.peak import Peak, peak
from gpuviz.analysis.sites import sites
from gpuviz.analysis.state import state_at
from gpuviz.data.arrays import coded, numbers
from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import Moment, RecordingData
from gpuviz.data.tables import schemas

if TYPE_CHECKING:
    from gpuviz._core import MemoryState

TABLE = "host_memory_events"
_EVENTS = "memory_events"
# Tables that the call sites of events follow from.
_SITES = ("stacks", "frames")


class HostMemory:
    """Pinned host memory that gpuviz's allocator served during a recording.

    Its functions are those of the same name of `gpuviz.Recording`, which are about the memory of
    devices. Times are nanoseconds since the recording's start, sizes are bytes.
    """

    def __init__(self, recording: RecordingData) -> None:
        self._recording = recording

    def __repr__(self) -> str:
        return f"<HostMemory of {self.events} events>"

    @property
    def events(self) -> int:
        """Number of events, without those that describe what existed before the recording."""
        return self.as_device.manifest.events - self.as_device.manifest.initial_events

    @property
    def is_recorded(self) -> bool:
        """Whether there was any pinned memory of this allocator."""
        return self.as_device.manifest.events != 0

    @cached_property
    def memory_levels(self) -> pa.Table:
        """The totals over time, one row per change.

        Columns: ``time`` (ns), and in bytes ``requested``; ``active``, which is those rounded up,
        with blocks that were freed but wait for copies; ``allocated``, which is without these; and
        ``reserved``, which the driver has allocated, in use or cached. The state before the
        recording is one row at time 0.
        """
        names = ["time", "requested", "allocated", "active", "reserved"]
        return memory_levels(self.as_device).select(names)

    def peak(self) -> Peak:
        """Return time and size of the peak of allocated bytes; its ``device`` is None."""
        return peak(self.as_device)

    def sites(self, by: Literal["stack", "line"] = "stack", *, at: Moment = "peak") -> pa.Table:
        """Return bytes and counts by call site, most live bytes first.

        Args:
            by: One row for each call stack, or for each line of the user's program.
            at: The moment of ``live_bytes`` and ``live_count``.
        """
        return sites(self.as_device, by, at)

    @cached_property
    def as_device(self) -> RecordingData:
        """A recording whose only memory is this, as memory of device 0."""
        tables = {name: self._recording.tables[name] for name in _SITES}
        events = tables[_EVENTS] = as_memory_events(self._recording.tables[TABLE])
        start = self._recording.time_range[0]
        before = int((plain(events["time"]) <= start).sum())
        manifest = replace(
            self._recording.manifest,
            events=events.num_rows,
            initial_events=before,
            memory_stats={},
            failures={},
            tables={},
        )
        return type(self._recording)(tables, manifest)


host_memory = Once(HostMemory)


def events_before(state: "MemoryState", time: int) -> pa.Table:
    """Return ``host_memory_events`` at ``time`` that recreate a state of `HostMemory.as_device`."""
    rows = initial_events(state).select(schemas()[TABLE].names)
    return rows.set_column(0, "time", pa.array(np.full(rows.num_rows, time, np.int64)))


def window_of(recording: RecordingData, start: int, end: int) -> pa.Table:
    """Return ``host_memory_events`` of a window after ``start`` and until ``end``."""
    events = recording.tables[TABLE]
    if not events.num_rows:
        return events
    times = plain(events["time"])
    before = events_before(state_at(host_memory(recording).as_device, start), start)
    inside = events.filter((times > start) & (times <= end))
    return pa.concat_tables([before, inside.select(before.schema.names)]).unify_dictionaries()


def as_memory_events(events: pa.Table) -> pa.Table:
    """Return ``host_memory_events`` as ``memory_events`` of device 0."""

    def nothing(kind: pa.DataType) -> pa.Array:
        if pa.types.is_dictionary(kind):
            # No library is the owner.
            return coded(np.zeros(events.num_rows, np.int8), [""])
        return numbers(np.zeros(events.num_rows, str(kind)), kind)

    schema = schemas()[_EVENTS]
    known = set(events.schema.names)
    columns = [
        events[field.name] if field.name in known else nothing(field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)
