"""Part of a recording between two times."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.classification import cut, derive, touches, with_own
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.host_memory import TABLE as HOST_EVENTS
from gpuviz.analysis.host_memory import window_of
from gpuviz.analysis.initial_events import initial_events
from gpuviz.analysis.moments import as_ns
from gpuviz.analysis.processes import derive_by_process, processes
from gpuviz.analysis.state import state_at
from gpuviz.analysis.unseen import TABLE as UNRECORDED
from gpuviz.analysis.unseen import unseen_spans
from gpuviz.data.arrays import numbers, with_columns
from gpuviz.data.columns import plain
from gpuviz.data.derived import OF_ROWS, ROWS, schemas
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables

Chosen = dict[str, np.ndarray]

_MOMENTS = ("device_memory", "memory_operations", "host_accesses", "collectives")
_INTERVALS = ("activities", "api_calls", "synchronizations", "overheads", "host_samples", "ranges")
_EVENTS = "memory_events"


def window(recording: RecordingData, start: int, end: int) -> RecordingData:
    """Return the part of a recording after ``start`` and until ``end``, on the same time axis.

    Blocks that exist at ``start`` become initial events. Rows that extend beyond the window are
    kept whole, with what they refer to: the calls that launched or waited, the records and waits of
    streams, the ranges around calls, and the last sample of device memory before. Derived tables
    are those of the whole recording, cut to the window. Counts of dropped rows are those of the
    whole recording.

    Raises:
        ValueError: The window ends before it begins, or a bound is not an integer.
    """
    start, end = as_ns(start, "start"), as_ns(end, "end")
    if end < start:
        raise ValueError(f"the window must not end before it starts, got {start} to {end} ns")
    tables = dict(recording.tables)
    before = initial_events(state_at(recording, start))
    tables[_EVENTS] = _events(recording, before, start, end)
    tables[HOST_EVENTS] = window_of(recording, start, end)
    bounds = _within(recording, start, end)
    tables[UNRECORDED] = _unseen(recording, bounds)
    cut_tables = _derived(recording, bounds)
    chosen = {name: touches(tables[name], (start, end)) for name in _INTERVALS}
    chosen |= {name: _moments(tables[name], start, end) for name in _MOMENTS}
    _choose_referenced(tables, cut_tables, chosen)
    if end < recording.duration_ns:
        # It is about the end of the recording.
        tables["held_blocks"] = tables["held_blocks"].slice(0, 0)
    for name, rows in chosen.items():
        tables[name] = tables[name].filter(rows)
    manifest = replace(
        recording.manifest,
        duration_ns=bounds[1],
        window_start_ns=bounds[0],
        window_end_ns=bounds[1],
        complete=recording.manifest.complete or end <= recording.duration_ns,
        events=tables[_EVENTS].num_rows,
        initial_events=before.num_rows,
        tables={},
    )
    part = type(recording)(tables, manifest)
    renumbered = {name: _renumbered(name, cut_tables[name], chosen) for name in cut_tables}
    derived.keep(part, with_own(renumbered, part.tables, named=derived(recording)["names"]))
    return part


def _within(recording: RecordingData, start: int, end: int) -> tuple[int, int]:
    """Return a window without the time that the recording does not cover."""
    first, last = recording.time_range
    return min(max(start, first), last), min(max(end, first), last)


def _unseen(recording: RecordingData, bounds: tuple[int, int]) -> pa.Table:
    """Return when the work of the GPU is not known, within bounds."""
    begin, end = unseen_spans(recording.tables, bounds).values()
    columns = [np.arange(1, len(begin) + 1), begin, end, np.ones(len(begin))]
    schema = recording.tables[UNRECORDED].schema
    arrays = (numbers(each, field.type) for each, field in zip(columns, schema, strict=True))
    return pa.table([*arrays], schema=schema)


def _derived(recording: RecordingData, bounds: tuple[int, int]) -> dict[str, pa.Table]:
    """Return the derived tables of a window; row numbers are those of the recording."""
    timed = [name for name in schemas() if name not in OF_ROWS]
    found = {name: cut(derived(recording)[name], name, bounds) for name in timed}
    # The gaps of a whole recording end at its first and last activity.
    if recording.bounds is None:
        found["idle_gaps"] = (
            derive_by_process(recording, "idle_gaps", bounds)
            if processes(recording)
            else derive(recording.tables, "idle_gaps", bounds)
        )
    return found


def _choose_referenced(tables: Tables, derived_tables: Tables, chosen: Chosen) -> None:
    """Choose also the rows that chosen rows refer to, in place."""
    for name, column, table in ROWS:
        if name in derived_tables and table in chosen and table != "activities":
            rows = plain(derived_tables[name][column])
            chosen[table][rows[rows >= 0]] = True
    users = ("activities", "synchronizations", "memory_operations", "overheads")
    used = [plain(tables[name]["correlation"])[chosen[name]] for name in users]
    chosen["api_calls"] |= _is_one_of(tables["api_calls"]["correlation"], np.concatenate(used))
    used.append(plain(tables["api_calls"]["correlation"])[chosen["api_calls"]])
    for name in ("launch_blocks", "graph_calls"):
        chosen[name] = _is_one_of(tables[name]["correlation"], np.concatenate(used))
    _choose_ranges(tables, chosen)


def _choose_ranges(tables: Tables, chosen: Chosen) -> None:
    """Choose the ranges of chosen calls and events, and the ranges around those."""
    users = ("api_calls", "collectives")
    calls = [plain(tables[name]["range"])[chosen[name]] for name in users]
    parents, found = plain(tables["ranges"]["parent"]), chosen["ranges"]
    events = (plain(tables[name]["range"]) for name in (_EVENTS, HOST_EVENTS))
    wanted = np.concatenate([*calls, *events, parents[found]])
    while wanted.size:
        new = _is_one_of(tables["ranges"]["id"], wanted) & ~found
        found |= new
        wanted = parents[new]


def _is_one_of(column: pa.ChunkedArray, ids: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.isin(plain(column), ids[ids != 0])
    return found


def _renumbered(name: str, table: pa.Table, chosen: Chosen) -> pa.Table:
    """Return a derived table with the numbers of chosen rows; -1 for the others."""
    for of, column, rows_of in ROWS:
        if of == name:
            rows = chosen[rows_of]
            numbers = np.append(np.where(rows, np.cumsum(rows) - 1, -1), -1)
            table = with_columns(table, **{column: numbers[plain(table[column])]})
    return table.cast(schemas()[name])


def _events(recording: RecordingData, before: pa.Table, start: int, end: int) -> pa.Table:
    events = recording.tables[_EVENTS].slice(recording.manifest.initial_events)
    times = plain(events["time"])
    inside = events.filter((times > start) & (times <= end))
    return pa.concat_tables([before, inside]).unify_dictionaries()


def _moments(table: pa.Table, start: int, end: int) -> np.ndarray:
    """Return the rows in a window, and each device's last sample of memory before it."""
    times = plain(table["time"])
    chosen: np.ndarray = (times > start) & (times <= end)
    if "used" in table.schema.names:
        earlier = np.flatnonzero(times <= start)
        devices = plain(table["device"])[earlier]
        for device in np.unique(devices):
            chosen[earlier[devices == device][-1]] = True
    return chosen
