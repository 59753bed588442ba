"""A recording reduced to the state at one event and what happened just before."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.initial_events import initial_events
from gpuviz.analysis.initial_state import initial_state
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIVITY_TABLES, REFERENCES, Tables
from gpuviz.quantities import format_count

EVENTS = "memory_events"
MOST_ROWS = 20_000
# Stacks first: they name frames.
_NAMED_BY_OTHERS = ("stacks", "frames", "launch_configurations")


def last_moments(recording: RecordingData, row: int, most_rows: int = MOST_ROWS) -> RecordingData:
    """Return a recording that ends with a row of ``memory_events``.

    Args:
        recording: The recording.
        row: The last row to keep.
        most_rows: How many events, and how many rows of each table of activities, may be kept. Of
            older events only blocks that are still live remain, as initial events; of older calls,
            those that launched or waited for what is kept.
    """
    tables = dict(recording.tables)
    events = tables[EVENTS]
    end = events["time"][row].as_py()
    first = max(recording.manifest.initial_events, row + 1 - most_rows)
    initial = recording.manifest.initial_events
    if first > initial:
        tables[EVENTS], initial = _from(recording, first, row + 1)
    else:
        tables[EVENTS] = events.slice(0, row + 1)
    manifest = replace(
        recording.manifest,
        complete=False,
        duration_ns=end,
        initial_events=initial,
        notes=(*recording.manifest.notes, _note(recording, first, row)),
        tables={},
    )
    for name in (*ACTIVITY_TABLES, "device_memory", "ranges"):
        tables[name] = _newest(tables[name], end, most_rows)
    tables["api_calls"] = _calls(recording, tables, end, most_rows)
    tables = _without_unnamed(tables)
    return type(recording)(tables, replace(manifest, events=tables[EVENTS].num_rows))


def _note(recording: RecordingData, first: int, row: int) -> str:
    note = "The recording ends at the failed request for memory."
    initial = recording.manifest.initial_events
    if first == initial:
        return note
    return (
        f"{note} It contains the last {format_count(row + 1 - first)} of "
        f"{format_count(row + 1 - initial)} events, and the state of memory before them."
    )


def _from(recording: RecordingData, first: int, end: int) -> tuple[pa.Table, int]:
    state = initial_state(recording)
    state.apply(recording.memory_columns, recording.manifest.initial_events, first)
    before = initial_events(state)
    kept = recording.tables[EVENTS].slice(first, end - first)
    return pa.concat_tables([before, kept]).unify_dictionaries(), before.num_rows


def _newest(table: pa.Table, end: int, most_rows: int) -> pa.Table:
    if "time" in table.schema.names:
        table = table.filter(plain(table["time"]) <= end)
    return table.slice(max(0, table.num_rows - most_rows))


def _calls(recording: RecordingData, tables: Tables, end: int, most_rows: int) -> pa.Table:
    """Return the newest calls, and those of the activities and waits in ``tables``."""
    calls = recording.tables["api_calls"]
    users = [tables[name]["correlation"] for name in ("activities", "synchronizations")]
    used = np.concatenate([plain(column) for column in users])
    chosen = np.isin(plain(calls["correlation"]), used[used != 0])
    before = plain(calls["time"]) <= end
    chosen[np.flatnonzero(before)[-most_rows:]] = True
    return calls.filter(chosen & before)


def _without_unnamed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables without call stacks, frames and launches that no row refers to."""
    import pyarrow.compute as pc

    for target in _NAMED_BY_OTHERS:
        columns = [tables[table][column] for table, column, of in REFERENCES if of == target]
        chunks = [
            chunk.flatten() if pa.types.is_list(chunk.type) else chunk
            for column in columns
            for chunk in column.chunks
        ]
        used = pa.chunked_array(chunks, pa.uint32())
        tables[target] = tables[target].filter(
            pc.is_in(tables[target]["id"], value_set=used.unique())
        )
    return tables
