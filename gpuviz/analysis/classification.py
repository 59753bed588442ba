"""Computation of the derived tables of a recording, or of part of its rows."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.calls import call_kinds
from gpuviz.analysis.launches import calls_of, durations, within
from gpuviz.analysis.peer_copies import peer_copies
from gpuviz.analysis.row_facts import ROW_FACTS
from gpuviz.analysis.sampled_work import TABLES as SAMPLED
from gpuviz.analysis.timed_rows import timed_activities, timed_calls, timed_synchronizations
from gpuviz.analysis.unseen import FURTHER, is_whole, parts, unseen_spans
from gpuviz.data.arrays import coded, empty, numbers
from gpuviz.data.arrays import texts as text_array
from gpuviz.data.codes import NAMED_KINDS, CallKind
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.derived import NULLABLE, OF_ROWS, SOURCES, schemas
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.data.tables import schemas as primary_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Tables = Mapping[str, pa.Table]

_ACTIVITY_KINDS = DICTIONARIES["activities", "kind"]
_SYNCHRONIZATION_KINDS = DICTIONARIES["synchronizations", "kind"]
_WAIT_KINDS = WORDS["host_waits", "kind"]
_LIMIT = 2**60
_OPEN = -1
# `idle_gaps` is limited to the larger of this many rows, and this many per source row; with
# thousands of streams there would be more.
_MOST_GAPS = 1 << 20
_MOST_GAPS_PER_ROW = 4


def classify(tables: "Tables") -> "dict[str, pa.Table]":
    """Return the derived tables of some tables; see `gpuviz.data.derived`.

    Args:
        tables: Tables of `gpuviz.data.tables`, or slices of them; missing ones are empty. Row
            numbers in the result refer to the given rows.
    """
    return {name: derive(tables, name) for name in schemas()}


def derive(tables: "Tables", name: str, window: "tuple[int, int] | None" = None) -> "pa.Table":
    """Return one derived table, or its part in a window; see `classify`."""
    known = {
        each: tables[each] if each in tables else empty(primary_schemas()[each])
        for each in (*SOURCES, *SAMPLED)
    }
    if name in OF_ROWS:
        return table_of(name, ROW_FACTS[name](known))
    windows = known | {each: tables[each] for each in FURTHER if each in tables}
    if name == "idle_gaps":
        gaps = _idle_gaps(known, window) if is_whole(tables) else _seen_gaps(windows, window)
        return table_of(name, gaps)
    if name == "unseen_spans":
        return table_of(name, unseen_spans(windows, window))
    rule = {"host_waits": _host_waits, "stream_waits": _stream_waits, "peer_copies": _peer_copies}
    made = table_of(name, rule[name](known))
    return made if window is None else cut(made, name, window)


def cut(table: "pa.Table", name: str, window: "tuple[int, int]") -> "pa.Table":
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
    for column, values in columns.items():
        place = inside.schema.get_field_index(column)
        inside = inside.set_column(place, inside.schema.field(column), pa.array(values))
    if name in {"idle_gaps", "unseen_spans"}:
        return inside.filter(begin < end)
    return inside


def _parts_within(waits: "pa.Table", window: "tuple[int, int]") -> "dict[str, pa.Array]":
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
    table: "pa.Table", window: "tuple[int, int]", columns: "Sequence[str]" = ("time", "end")
) -> "NDArray[Any]":
    """Return which rows lie in a window: after its start and until its end, at least in part.

    Rows without times, and open ranges that began before, do too.
    """
    start, end = window
    first, last = (plain(table[name]) for name in columns)
    unknown = (first == 0) & (last == 0)
    chosen: NDArray[Any] = (first <= end) & ((last > start) | (last == _OPEN)) | unknown
    return chosen


def with_own(
    kept: "Tables", tables: "Tables", *, named: "pa.Table | None" = None
) -> "dict[str, pa.Table]":
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


def _named_ids(names: "pa.Table") -> "NDArray[Any]":
    kinds = codes(names["of"], NAMED_KINDS).astype(np.int64)
    ids: NDArray[Any] = plain(names["id"]).astype(np.int64) * len(NAMED_KINDS) + kinds
    return ids


def table_of(name: str, columns: "Mapping[str, Any]") -> "pa.Table":
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


def _host_waits(tables: "Tables") -> "dict[str, Any]":
    """Return the times in which the host was blocked: waits, and blocking calls without a wait.

    Queries are excluded. If calls are recorded, a wait without a call was a query: waiting calls
    are always recorded, queries only if all calls are.
    """
    table, calls_table = tables["synchronizations"], tables["api_calls"]
    waits = codes(table["kind"], _SYNCHRONIZATION_KINDS) - _SYNCHRONIZATION_KINDS.index(
        _WAIT_KINDS[0]
    )
    calls = calls_of(tables, plain(table["correlation"]))
    kinds_of_calls = call_kinds(tables)
    queries = np.isin(calls, np.flatnonzero(kinds_of_calls == CallKind.QUERY))
    if len(kinds_of_calls):
        queries |= calls < 0
    rows = np.flatnonzero((waits >= 0) & ~queries)
    blocking = _blocking_calls(tables, kinds_of_calls)
    alone = blocking[np.isin(blocking, calls[rows], invert=True)]
    kinds = np.concatenate([waits[rows], _kinds_alone(tables, alone, kinds_of_calls[alone])])
    call = np.concatenate([calls[rows], alone])
    time = np.concatenate([_times(table, rows), _times(calls_table, alone)])
    length = np.concatenate([durations(table)[rows], durations(calls_table)[alone]])
    copies = _first_copies(tables, call)
    is_copy = kinds >= _WAIT_KINDS.index("memcpy")
    of_copy = is_copy & (copies >= 0)
    waiting = length.copy()
    began = _times(tables["activities"], copies[of_copy])
    waiting[of_copy] = np.clip(began - time[of_copy], 0, length[of_copy])
    unknown = is_copy & (copies < 0)
    return {
        "time": time,
        "end": time + length,
        "kind": kinds,
        "name": _at(calls_table, "name", call),
        "call": call,
        "synchronization": np.concatenate([rows, np.full(len(alone), -1)]),
        "thread": _at(calls_table, "thread", call),
        "stack": _at(calls_table, "stack", call),
        "device": _of_wait_or_copy(tables, "device", rows, copies, -1),
        "stream": _of_wait_or_copy(tables, "stream", rows, copies, 0),
        "waiting_ns": numbers(waiting, pa.int64(), unknown=unknown),
        "transfer_ns": numbers(length - waiting, pa.int64(), unknown=unknown),
    }


def _blocking_calls(tables: "Tables", kinds: "NDArray[Any]") -> "NDArray[Any]":
    """Return the rows of blocking calls; of calls with the same correlation id, the first."""
    blocking = (CallKind.SYNCHRONIZE, CallKind.MEMCPY, CallKind.PAGEABLE_MEMCPY)
    rows = np.flatnonzero(np.isin(kinds, blocking))
    correlations = plain(tables["api_calls"]["correlation"])[rows]
    alone: NDArray[Any] = rows[(calls_of(tables, correlations) == rows) | (correlations == 0)]
    return alone


def _kinds_alone(
    tables: "Tables",
    calls: "NDArray[Any]",
    kinds: "NDArray[Any]",
) -> "NDArray[Any]":
    """Return the kind of wait of each call; for synchronizing calls, from their names."""
    found = np.full(len(calls), _WAIT_KINDS.index("context_synchronize"))
    names = _at(tables["api_calls"], "name", calls)
    for word, kind in (("Event", "event_synchronize"), ("Stream", "stream_synchronize")):
        found[are_named(tables, names, re.compile(word).search)] = _WAIT_KINDS.index(kind)
    found[kinds == CallKind.MEMCPY] = _WAIT_KINDS.index("memcpy")
    found[kinds == CallKind.PAGEABLE_MEMCPY] = _WAIT_KINDS.index("pageable_memcpy")
    return found


def _first_copies(tables: "Tables", calls: "NDArray[Any]") -> "NDArray[Any]":
    """Return the row of the first copy of each call; -1 if unknown."""
    activities = tables["activities"]
    kinds = codes(activities["kind"], _ACTIVITY_KINDS)
    copies = np.flatnonzero(kinds == _ACTIVITY_KINDS.index("memcpy"))
    copies = copies[np.argsort(plain(activities["time"])[copies], kind="stable")]
    wanted = _at(tables["api_calls"], "correlation", calls)
    found = first_rows(plain(activities["correlation"])[copies], wanted)
    rows: NDArray[Any] = np.append(copies, -1)[found]
    return rows


def _of_wait_or_copy(
    tables: "Tables",
    column: str,
    rows: "NDArray[Any]",
    copies: "NDArray[Any]",
    unknown: int,
) -> "NDArray[Any]":
    of_waits = plain(tables["synchronizations"][column])[rows]
    of_copies = _at(tables["activities"], column, copies[len(rows) :], unknown)
    return np.concatenate([of_waits, of_copies])


def _at(
    table: "pa.Table",
    column: str,
    rows: "NDArray[Any]",
    otherwise: int = 0,
) -> "NDArray[Any]":
    """Return the values of a column in rows; ``otherwise`` where the row is -1."""
    values = plain(table[column])
    found = np.full(len(rows), otherwise, values.dtype)
    found[rows >= 0] = values[rows[rows >= 0]]
    return found


def _times(table: "pa.Table", rows: "NDArray[Any]") -> "NDArray[Any]":
    """Return the times of rows, clipped so that damaged rows cannot cause an overflow."""
    times: NDArray[Any] = np.clip(plain(table["time"])[rows], -_LIMIT, _LIMIT)
    return times


def _seen_gaps(tables: "Tables", window: "tuple[int, int] | None") -> "dict[str, Any]":
    """Return the parts of idle gaps while streams were recorded, by lane and time."""
    found: list[Mapping[str, Any]] = []
    for part in parts(tables, window):
        gaps = _idle_gaps(part.tables, (part.begin, part.end))
        gaps["activity"] = np.append(part.rows, -1)[gaps["activity"]]
        found.append(gaps)
    if not found:
        return {field.name: np.zeros(0, np.int64) for field in schemas()["idle_gaps"]}
    joined = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    order = np.lexsort((joined["time"], joined["stream"], joined["device"]))
    return {name: column[order] for name, column in joined.items()}


def _idle_gaps(tables: "Tables", window: "tuple[int, int] | None") -> "dict[str, Any]":
    """Return the parts of idle gaps; the native core contains the rule."""
    activities, calls = timed_activities(tables), timed_calls(tables)
    rows = sum(tables[name].num_rows for name in ("activities", "api_calls"))
    most = max(_MOST_GAPS, _MOST_GAPS_PER_ROW * rows)
    bounds = window or (None, None)
    columns = _core.idle_gaps(activities, calls, timed_synchronizations(tables), most, *bounds)
    if len(activities["time"]) < tables["activities"].num_rows:
        kinds = codes(tables["activities"]["kind"], _ACTIVITY_KINDS)
        given = np.flatnonzero(kinds != _ACTIVITY_KINDS.index("range"))
        columns["activity"] = np.append(given, -1)[columns["activity"]]
    return columns


def _stream_waits(tables: "Tables") -> "dict[str, Any]":
    """Return each wait of a stream for an event of another stream, in the order of the waits."""
    table = tables["synchronizations"]
    kinds = codes(table["kind"], _SYNCHRONIZATION_KINDS)
    streams = plain(table["stream"])
    waits = np.flatnonzero(kinds == _SYNCHRONIZATION_KINDS.index("stream_wait_event"))
    records = np.flatnonzero(kinds == _SYNCHRONIZATION_KINDS.index("event_record"))
    found = records_of(table, records, waits)
    chosen = (found >= 0) & (streams[found] != streams[waits])
    record, wait = found[chosen], waits[chosen]
    orders = _Launches(tables, distinct(streams[wait]))
    called, times = plain(table["correlation"]), timed_synchronizations(tables)["time"]
    recorded = times[record]
    resumed = np.maximum(times[wait], recorded)
    after = orders.first_after(streams[wait], called[wait])
    resumed[after >= 0] = plain(tables["activities"]["time"])[after[after >= 0]]
    return {
        "recorded_stream": streams[record],
        "recorded_time": recorded,
        "waiting_stream": streams[wait],
        "resumed_time": resumed,
        "record": record,
        "wait": wait,
    }


def _peer_copies(tables: "Tables") -> "dict[str, Any]":
    """Return each copy between devices, with the streams at both of its ends."""
    copies = peer_copies(tables)
    stream = copies.stream
    sides = (copies.source, copies.destination)
    from_stream, to_stream = (np.where(side == copies.device, stream, 0) for side in sides)
    issued = plain(tables["activities"]["correlation"])[copies.activity]
    waits = _stream_waits(tables) if len(copies) else {}
    calls = plain(tables["synchronizations"]["correlation"])
    devices = _devices_of_streams(tables)
    for own, other in {*zip(stream.tolist(), copies.source.tolist(), strict=True)}:
        here = (stream == own) & (copies.source == other) & (copies.device != other)
        chosen = (waits["waiting_stream"] == own) & (devices[waits["record"]] == other)
        called, known = _in_order(calls[waits["wait"]], waits["recorded_stream"], chosen)
        from_stream[here] = np.append(known, 0)[np.searchsorted(called, issued[here]) - 1]
    for own, other in {*zip(stream.tolist(), copies.destination.tolist(), strict=True)}:
        here = (stream == own) & (copies.destination == other) & (copies.device != other)
        chosen = (waits["recorded_stream"] == own) & (devices[waits["wait"]] == other)
        called, known = _in_order(calls[waits["record"]], waits["waiting_stream"], chosen)
        to_stream[here] = np.append(known, 0)[np.searchsorted(called, issued[here])]
    running = plain(tables["activities"]["stream"])
    half = np.where(copies.is_staged, running[copies.activity], 0)
    other_half = np.where(copies.is_staged, np.append(running, 0)[copies.arrival], 0)
    return {
        "time": np.clip(copies.time, -_LIMIT, _LIMIT),
        "end": np.clip(copies.end, -_LIMIT, _LIMIT),
        "activity": copies.activity,
        "arrival": copies.arrival,
        "stream": stream,
        "source_device": copies.source,
        "source_stream": np.where(from_stream != 0, from_stream, half),
        "destination_device": copies.destination,
        "destination_stream": np.where(to_stream != 0, to_stream, other_half),
    }


def _devices_of_streams(tables: "Tables") -> "NDArray[Any]":
    """Return the device of the stream of each row of ``synchronizations``.

    CUPTI's device is that of the current context, which may be another one.
    """
    rows, streams = tables["synchronizations"], tables["streams"]
    known = first_rows(plain(streams["id"]), plain(rows["stream"]))
    of_stream = np.append(plain(streams["device"]), -1)[known]
    return np.where(known >= 0, of_stream, plain(rows["device"]))


def _in_order(
    calls: "NDArray[Any]", streams: "NDArray[Any]", chosen: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return chosen calls that are known, in order, and their streams."""
    rows = np.flatnonzero(chosen & (calls != 0))
    rows = rows[np.argsort(calls[rows], kind="stable")]
    return calls[rows], streams[rows]


def records_of(
    table: "pa.Table",
    records: "NDArray[Any]",
    waits: "NDArray[Any]",
) -> "NDArray[Any]":
    """Return the row of the record of each wait, the last one if there are several; -1 if unknown.

    A record and its wait have the same sync id. Without one, it is the latest record of the event
    that was called before the wait.
    """
    found = np.full(len(waits), -1)
    if not records.size:
        return found
    ids = plain(table["event_sync_id"])
    order = np.argsort(ids[records], kind="stable")
    last = np.searchsorted(ids[records], ids[waits], side="right", sorter=order) - 1
    named = records[order[last]]
    joined = (last >= 0) & (ids[waits] != 0) & (ids[named] == ids[waits])
    found[joined] = named[joined]
    events, called = plain(table["event"]), plain(table["correlation"])
    latest = _Ordered(events[records], called[records]).last_until(events[waits], called[waits])
    unnamed = (ids[waits] == 0) & (latest >= 0)
    found[unnamed] = records[latest[unnamed]]
    return found


class _Ordered:
    """Rows by key, in the order of their calls; rows with call 0 are excluded."""

    def __init__(self, keys: "NDArray[Any]", calls: "NDArray[Any]") -> None:
        rows = np.flatnonzero(calls != 0)
        combined = _combined(keys[rows], calls[rows])
        order = np.argsort(combined, kind="stable")
        self._rows = rows[order]
        self._combined = combined[order]

    def last_until(self, keys: "NDArray[Any]", calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the last row of each key up to a call; -1 if there is none."""
        places = self._places(keys, calls) - 1
        return self._rows_at(places, keys)

    def first_after(self, keys: "NDArray[Any]", calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the first row of each key after a call; -1 if there is none."""
        return self._rows_at(self._places(keys, calls), keys)

    def _places(self, keys: "NDArray[Any]", calls: "NDArray[Any]") -> "NDArray[Any]":
        return np.searchsorted(self._combined, _combined(keys, calls), side="right")

    def _rows_at(self, places: "NDArray[Any]", keys: "NDArray[Any]") -> "NDArray[Any]":
        found = np.full(len(places), -1)
        there = np.flatnonzero((places >= 0) & (places < len(self._rows)))
        same = self._combined[places[there]] >> np.uint64(32) == keys[there]
        found[there[same]] = self._rows[places[there[same]]]
        return found


class _Launches:
    """The activities of some streams, in launch order."""

    def __init__(self, tables: "Tables", streams: "NDArray[Any]") -> None:
        activities = tables["activities"]
        of_all = plain(activities["stream"])
        self._rows = np.flatnonzero(np.isin(of_all, streams)) if streams.size else np.zeros(0, int)
        calls = plain(activities["correlation"])[self._rows]
        self._ordered = _Ordered(of_all[self._rows], calls)

    def first_after(self, streams: "NDArray[Any]", calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return the row of the first activity launched on each stream after a call; -1 if none."""
        found: NDArray[Any] = np.append(self._rows, -1)[self._ordered.first_after(streams, calls)]
        return found


def _combined(keys: "NDArray[Any]", calls: "NDArray[Any]") -> "NDArray[Any]":
    combined: NDArray[Any] = (keys.astype(np.uint64) << np.uint64(32)) | calls.astype(np.uint64)
    return combined
