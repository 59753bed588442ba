"""Computation of the derived tables of a recording, or of part of its rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.host_waits import host_waits
from gpuviz.analysis.idle_gaps import idle_gaps
from gpuviz.analysis.launches import within
from gpuviz.analysis.peer_copy_streams import peer_copy_streams
from gpuviz.analysis.row_facts import ROW_FACTS
from gpuviz.analysis.sampled_work import TABLES as SAMPLED
from gpuviz.analysis.stream_waits import stream_waits
from gpuviz.analysis.unseen import FURTHER, unseen_spans
from gpuviz.data.arrays import coded, empty, numbers, with_columns
from gpuviz.data.arrays import texts as text_array
from gpuviz.data.codes import NAMED_KINDS
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.derived import NULLABLE, OF_ROWS, SOURCES, schemas
from gpuviz.data.tables import Tables
from gpuviz.data.tables import schemas as primary_schemas

_OPEN = -1


def classify(tables: Tables) -> dict[str, pa.Table]:
    """Return the derived tables of some tables; see `gpuviz.data.derived`.

    Args:
        tables: Tables of `gpuviz.data.tables`, or slices of them; missing ones are empty. Row
            numbers in the result refer to the given rows.
    """
    return {name: derive(tables, name) for name in schemas()}


def derive(tables: Tables, name: str, window: tuple[int, int] | None = None) -> pa.Table:
    """Return one derived table, or its part in a window; see `classify`."""
    known = {
        each: tables[each] if each in tables else empty(primary_schemas()[each])
        for each in (*SOURCES, *SAMPLED)
    }
    if name in OF_ROWS:
        return table_of(name, ROW_FACTS[name](known))
    windows = known | {each: tables[each] for each in FURTHER if each in tables}
    if name == "idle_gaps":
        return table_of(name, idle_gaps(windows, window))
    if name == "unseen_spans":
        return table_of(name, unseen_spans(windows, window))
    rule = {
        "host_waits": host_waits,
        "stream_waits": stream_waits,
        "peer_copies": peer_copy_streams,
    }
    made = table_of(name, rule[name](known))
    return made if window is None else cut(made, name, window)


def cut(table: pa.Table, name: str, window: tuple[int, int]) -> pa.Table:
    """Return the part of a derived table in a window: waits and gaps last no longer than it.

    A wait of a stream and a copy between devices stay whole if any of them is in the window.
    """
    if name == "stream_waits":
        return table.filter(touches(table, window, ("recorded_time", "resumed_time")))
    inside = table.filter(touches(table, window))
    if name == "peer_copies":
        return inside
    begin, end = within(inside, window)
    columns = {"time": begin, "end": end}
    if name == "host_waits":
        columns |= _parts_within(inside, window)
    inside = with_columns(inside, **columns)
    if name in {"idle_gaps", "unseen_spans"}:
        return inside.filter(begin < end)
    return inside


def _parts_within(waits: pa.Table, window: tuple[int, int]) -> dict[str, pa.Array]:
    """Return the parts of waits in a window: first the host waits for work, then for a copy."""
    import pyarrow.compute as pc

    unknown = plain(pc.is_null(waits["waiting_ns"]).cast("uint8")).astype(bool)
    began = plain(waits["time"]) + plain(pc.fill_null(waits["waiting_ns"], 0))
    waiting = np.clip(began, *window) - np.clip(plain(waits["time"]), *window)
    transfer = np.clip(plain(waits["end"]), *window) - np.clip(began, *window)
    return {
        "waiting_ns": pa.array(waiting, mask=unknown),
        "transfer_ns": pa.array(transfer, mask=unknown),
    }


def touches(
    table: pa.Table, window: tuple[int, int], columns: Sequence[str] = ("time", "end")
) -> np.ndarray:
    """Return which rows lie in a window: after its start and until its end, at least in part.

    Rows without times, and open ranges that began before, do too.
    """
    start, end = window
    first, last = (plain(table[name]) for name in columns)
    unknown = (first == 0) & (last == 0)
    chosen: np.ndarray = (first <= end) & ((last > start) | (last == _OPEN)) | unknown
    return chosen


def with_own(kept: Tables, tables: Tables, *, named: pa.Table | None = None) -> dict[str, pa.Table]:
    """Return derived tables of which those about single rows are computed from these tables.

    Args:
        kept: The other derived tables.
        tables: The tables.
        named: The table ``names`` of the whole of which these are a part: what gave a stream its
            name may not be in the part.
    """
    own = {name: derive(tables, name) for name in OF_ROWS}
    if named is not None:
        own["names"] = named.filter(np.isin(_named_ids(named), _named_ids(own["names"])))
    return {**kept, **own}


def _named_ids(names: pa.Table) -> np.ndarray:
    kinds = codes(names["of"], NAMED_KINDS).astype(np.int64)
    ids: np.ndarray = plain(names["id"]).astype(np.int64) * len(NAMED_KINDS) + kinds
    return ids


def table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return a derived table, given its columns."""
    schema = schemas()[name]
    arrays = [
        coded(columns[field.name], WORDS[name, field.name])
        if (name, field.name) in WORDS
        else columns[field.name]
        if (name, field.name) in NULLABLE
        else text_array(columns[field.name])
        if pa.types.is_string(field.type)
        else numbers(columns[field.name], field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)
