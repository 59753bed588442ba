"""Memory totals of each device over time."""

from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz.analysis.initial_state import initial_state
from gpuviz.data.arrays import integer_table
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

if TYPE_CHECKING:
    from gpuviz._core import MemoryState


def memory_levels(recording: RecordingData) -> pa.Table:
    """Return the memory totals of each device, one row per change.

    The table has one row for each change of a device's totals. Columns: ``time`` (ns), ``device``,
    and in bytes ``requested``, ``allocated``, ``active``, ``reserved``, ``inactive_split`` and
    ``largest_free`` (-1 if unknown), as defined by ``torch.cuda.memory_stats``. The initial state
    of each device is one row at time 0.
    """
    return _levels_and_end(recording)[0]


def final_state(recording: RecordingData) -> "MemoryState":
    """Return the memory of every device at the end; must not be modified."""
    return _levels_and_end(recording)[1]


@Once
def _levels_and_end(recording: RecordingData) -> "tuple[pa.Table, MemoryState]":
    state = initial_state(recording)
    first = recording.manifest.initial_events
    before = integer_table(state.levels(0))
    changes = integer_table(state.apply_with_levels(recording.memory_columns, first))
    return pa.concat_tables([before, changes]), state
