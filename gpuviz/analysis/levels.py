"""Memory totals of each device over time."""

from typing import TYPE_CHECKING

from gpuviz.analysis.state import initial_state

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz._core import MemoryState
    from gpuviz.recording.recording import Recording


def levels_and_end(recording: "Recording") -> "tuple[pa.Table, MemoryState]":
    """Return the table ``memory_levels`` and the state at the end, from one pass over the events.

    The table has one row for each change of a device's totals. Columns: ``time`` (ns), ``device``,
    and in bytes ``requested``, ``allocated``, ``active``, ``reserved``, ``inactive_split`` and
    ``largest_free`` (-1 if unknown), as defined by ``torch.cuda.memory_stats``. The initial state
    of each device is one row at time 0.
    """
    import pyarrow as pa

    state = initial_state(recording)
    first = recording.manifest.initial_events
    before = pa.table(state.levels(0))
    changes = pa.table(state.apply_with_levels(recording.memory_columns, first))
    return pa.concat_tables([before, changes]), state
