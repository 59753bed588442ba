"""Part of a recording between two times."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.classification import DerivedTables
from gpuviz.analysis.columns import plain
from gpuviz.analysis.initial_events import initial_events
from gpuviz.analysis.moments import as_ns
from gpuviz.analysis.state import state_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_INTERVALS = ("activities", "api_calls", "synchronizations", "overheads", "ranges")
_MOMENTS = ("device_memory", "memory_operations")
_OPEN = -1
_EVENTS = "memory_events"


def window(recording: "Recording", start: int, end: int) -> "Recording":
    """Return the part of a recording after ``start`` and until ``end``, on the same time axis.

    Blocks that exist at ``start`` become initial events. Intervals that extend beyond the window
    are kept whole, with the calls that launched them; `Recording.overlap` with the same bounds
    clips them. Counts of dropped rows are those of the whole recording.

    Raises:
        ValueError: The window ends before it begins, or a bound is not an integer.
    """
    start, end = as_ns(start, "start"), as_ns(end, "end")
    if end < start:
        raise ValueError(f"the window must not end before it starts, got {start} to {end} ns")
    tables = dict(recording.tables)
    before = initial_events(state_at(recording, start))
    tables[_EVENTS] = _events(recording, before, start, end)
    chosen = {name: _touches(tables[name], start, end) for name in _INTERVALS}
    chosen["api_calls"] |= _launches(tables, chosen["activities"])
    for name, rows in chosen.items():
        tables[name] = tables[name].filter(rows)
    for name in _MOMENTS:
        times = plain(tables[name]["time"])
        tables[name] = tables[name].filter((times > start) & (times <= end))
    manifest = replace(
        recording.manifest,
        duration_ns=max(0, min(end, recording.duration_ns)),
        complete=recording.manifest.complete or end <= recording.duration_ns,
        events=tables[_EVENTS].num_rows,
        initial_events=before.num_rows,
        tables={},
    )
    part = type(recording)(tables, manifest)
    part.__dict__["derived"] = _DerivedTables(part.tables, recording, chosen, start, end)
    return part


class _DerivedTables(DerivedTables):
    """The derived tables of a window; a wait is in it as it was classified in the whole."""

    def __init__(
        self,
        tables: "Mapping[str, pa.Table]",
        whole: "Recording",
        chosen: "Mapping[str, NDArray[Any]]",
        start: int,
        end: int,
    ) -> None:
        super().__init__(tables)
        self._whole = whole
        self._chosen = chosen
        self._bounds = start, end

    def __getitem__(self, name: str) -> "pa.Table":
        if name == "host_waits" and name not in self._made:
            self._made[name] = self._host_waits()
        return super().__getitem__(name)

    def _host_waits(self) -> "pa.Table":
        import numpy as np
        import pyarrow as pa

        waits = self._whole.derived["host_waits"]
        waits = waits.filter(_touches(waits, *self._bounds))
        for column, table in (("call", "api_calls"), ("synchronization", "synchronizations")):
            chosen = self._chosen[table]
            numbers = np.append(np.where(chosen, np.cumsum(chosen) - 1, -1), -1)
            rows = pa.array(numbers[plain(waits[column])], pa.int32())
            waits = waits.set_column(waits.schema.get_field_index(column), column, rows)
        return waits


def _launches(tables: "Mapping[str, pa.Table]", activities: "NDArray[Any]") -> "NDArray[Any]":
    """Return which rows of ``api_calls`` launched some of the activities."""
    import numpy as np

    correlations = plain(tables["activities"]["correlation"])[activities]
    called = plain(tables["api_calls"]["correlation"])
    launches: NDArray[Any] = np.isin(called, correlations[correlations != 0])
    return launches


def _events(recording: "Recording", before: "pa.Table", start: int, end: int) -> "pa.Table":
    import pyarrow as pa

    events = recording.tables[_EVENTS].slice(recording.manifest.initial_events)
    times = plain(events["time"])
    inside = events.filter((times > start) & (times <= end))
    return pa.concat_tables([before, inside]).unify_dictionaries()


def _touches(table: "pa.Table", start: int, end: int) -> "NDArray[Any]":
    first, last = plain(table["time"]), plain(table["end"])
    unknown = (first == 0) & (last == 0)
    touches: NDArray[Any] = (first <= end) & ((last > start) | (last == _OPEN)) | unknown
    return touches
