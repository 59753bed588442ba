"""Memory totals of each device over time."""

from typing import TYPE_CHECKING

from gpuviz.analysis.state import initial_state

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.recording.recording import Recording


def levels(recording: "Recording") -> "pa.Table":
    """Return the table ``memory_levels``: one row whenever a total of a device changed.

    Columns: ``time`` (ns), ``device``, and in bytes ``requested``, ``allocated``, ``active``,
    ``reserved``, ``inactive_split`` and ``largest_free`` (-1 where unknown), each as
    ``torch.cuda.memory_stats`` defines it. What existed before the recording is one row for each
    device at time 0.
    """
    import pyarrow as pa

    state = initial_state(recording)
    first = recording.manifest.initial_events
    before = pa.table(state.levels(0))
    return pa.concat_tables(
        [before, pa.table(state.apply_with_levels(recording.memory_columns, first))],
    )
