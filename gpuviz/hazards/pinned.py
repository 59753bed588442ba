"""Pinned host memory of an observed pool, as blocks among those of the devices.

Copies of any stream may use a pinned block, and CuPy's pool hands it out again as soon as it is
freed. gpuviz's own pinned allocator waits for the copies, so that its blocks need no order.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.host_memory import TABLE, as_memory_events
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, schemas

_EVENTS = "memory_events"
# The table that the rows of a hazard refer to, by the memory that it is about.
EVENTS_OF = {"device": _EVENTS, "pinned": TABLE}


@dataclass(frozen=True, eq=False, slots=True)
class WithPinned:
    """A recording whose ``memory_events`` end with those of observed pinned memory.

    Attributes:
        recording: The recording; the one it was made from if there is no such memory.
        first: The number of rows of ``memory_events`` that are the recording's own.
        rows: For each further row, the row of ``host_memory_events``.
    """

    recording: RecordingData
    first: int
    rows: np.ndarray

    def place(self, row: int) -> int:
        """Return the row of ``memory_events``, or of ``host_memory_events`` if it is further."""
        return row if row < self.first else int(self.rows[row - self.first])


def with_pinned(recording: RecordingData) -> WithPinned:
    """Return a recording with the blocks of observed pinned memory.

    They are in a pool of their own, whose memory is ``pinned``, on the first device.
    """
    tables, events = dict(recording.tables), recording.tables[TABLE]
    first = tables[_EVENTS].num_rows
    segments = plain(events["address"])[
        codes(events["action"], ACTIONS) == ACTIONS.index("segment_alloc")
    ]
    # Those of gpuviz's allocator are in segments.
    rows = np.flatnonzero(~np.isin(plain(events["address"]), segments))
    if not rows.size or not recording.devices:
        return WithPinned(recording, first, rows[:0])
    added = as_memory_events(events.take(rows))
    pool = _unused(plain(tables["pools"]["id"]))
    device = np.full(len(rows), recording.devices[0])
    added = with_columns(added, device=device, pool=np.full(len(rows), pool))
    whole = [tables[_EVENTS].select(added.schema.names), added]
    tables[_EVENTS] = pa.concat_tables(whole).unify_dictionaries().combine_chunks()
    named = {"id": pool, "owner": 0, "memory": "pinned", "segment_type": "unknown"}
    named["framework"] = "cupy"
    pools = tables["pools"]
    row = pa.Table.from_pylist(
        [{field.name: named.get(field.name) for field in schemas()["pools"]}], schemas()["pools"]
    )
    tables["pools"] = pa.concat_tables([pools.select(row.schema.names), row]).unify_dictionaries()
    manifest = replace(recording.manifest, events=tables[_EVENTS].num_rows, tables={})
    return WithPinned(type(recording)(tables, manifest), first, rows)


def _unused(ids: np.ndarray) -> int:
    """Return an id that no row has: the one after the last, if there is one."""
    after = int(ids.max(initial=0)) + 1
    if after <= np.iinfo(ids.dtype).max:
        return after
    return int(np.setdiff1d(np.arange(1, len(ids) + 2), ids)[0])
