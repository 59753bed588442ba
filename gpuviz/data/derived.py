"""The derived tables of a recording: the classification of its rows.

`gpuviz.analysis.classification` computes them from the tables of `gpuviz.data.tables`. They
are stored with these, so that readers of a recording only filter, join, sum and draw.
"""

import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import numbers, with_columns
from gpuviz.data.codes import HOST_WAIT_KINDS, IDLE_CAUSES, MARK_KINDS, NAMED_KINDS
from gpuviz.data.columns import codes, distinct, plain, rows_at
from gpuviz.data.stored_tables import Stored
from gpuviz.data.tables import DICTIONARIES as PRIMARY_DICTIONARIES
from gpuviz.data.tables import Tables

# Version of the schemas and rules; tables of another version are recomputed.
DERIVED_VERSION = 7

_MARK = b"gpuviz_made_from"

# The tables and columns from which derived tables are computed.
SOURCES = {
    "activities": (
        *("time", "end", "name", "device", "stream", "correlation"),
        *("source_device", "destination_device"),
    ),
    "api_calls": ("time", "end", "name", "thread", "correlation", "stack", "stream"),
    "synchronizations": (
        "time",
        "end",
        "device",
        "stream",
        "event",
        "event_sync_id",
        "correlation",
    ),
    "launch_blocks": ("correlation", "block"),
    "memory_events": (
        *("time", "action", "address", "size", "requested_size"),
        *("device", "stream", "pool"),
    ),
    "strings": ("id", "text"),
    "pools": ("id", "owner", "segment_type", "framework"),
    "streams": ("id", "device", "handle", "name"),
}

# Tables about single rows, which those of any part of a recording have anew.
OF_ROWS = (
    *("names", "repeated_calls", "accessed_blocks", "memory_marks"),
    *("free_levels", "sampled_work"),
)

# Tables that files of earlier versions lack. Each is empty if the table named here is.
_LATER = {"unseen_spans": "unrecorded_spans", "sampled_work": "host_samples"}

DICTIONARIES = {
    ("host_waits", "kind"): HOST_WAIT_KINDS,
    ("idle_gaps", "cause"): IDLE_CAUSES,
    ("names", "of"): NAMED_KINDS,
    ("memory_marks", "kind"): MARK_KINDS,
}

NULLABLE = (("host_waits", "waiting_ns"), ("host_waits", "transfer_ns"))

# Columns of row numbers, and the table they refer to; -1 means none.
ROWS = (
    ("host_waits", "call", "api_calls"),
    ("host_waits", "synchronization", "synchronizations"),
    ("idle_gaps", "activity", "activities"),
    ("peer_copies", "activity", "activities"),
    ("peer_copies", "arrival", "activities"),
    ("repeated_calls", "call", "api_calls"),
    ("stream_waits", "record", "synchronizations"),
    ("stream_waits", "wait", "synchronizations"),
)


@cache
def schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of every derived table, by name.

    Times are nanoseconds since the recording's start. Row numbers start at 0; -1 means none. A
    damaged row that ends before it begins has duration 0.

    - ``host_waits``: one row for each time in which the host was blocked, from ``time`` to ``end``:
      the waits of ``synchronizations`` except queries, in their order, then the blocking calls of
      ``api_calls`` without one. ``memcpy`` is a synchronous copy from or to the host;
      ``pageable_memcpy`` is an asynchronous copy whose call stages pageable memory. ``name`` is the
      id in ``strings`` of the CUDA call; ``call`` and ``synchronization`` are row numbers.
      ``thread`` and ``stack`` are those of the call, ``device`` (-1 if unknown) and ``stream``
      those of the synchronization or of the call's first copy. ``waiting_ns`` is the part in which
      the host waited for earlier work of the GPU: all of a synchronization; for a copy, the time
      until the call's first copy began on the GPU. ``transfer_ns`` is the rest. Both are null for a
      copy without an activity.
    - ``idle_gaps``: the causes of idle time, from the start of a device's first activity to the end
      of its last, for the device as a whole (``stream`` 0) and for each of its streams, in this
      order. Activities without a known stream have none, and neither do the last of very many
      streams, whose rows would exceed the activities several times. A row is a part of a gap with
      one ``cause``; see `gpuviz.analysis.overlap.LaneOverlap`. The parts of a gap are adjacent.
      ``activity`` is the row of the activity that ended the gap. The gaps of a window cover all of
      its time; activities after it are not in its rows.
    - ``stream_waits``: work of a stream waited for an event of another stream
      (``stream_wait_event``). ``recorded_time`` is when the GPU reached the event's record; where
      that was not recorded, the latest of its call, the ends of the activities launched before on
      ``recorded_stream``, and the records that it had to wait for before; 0 if none is known.
      ``resumed_time`` is the start of the first activity launched on ``waiting_stream`` after the
      wait, else the later of the wait's and the record's time. ``record`` and ``wait`` are row
      numbers of ``synchronizations``.
    - ``peer_copies``: a copy from one device to another, in the order of ``activities``, of which
      ``activity`` is the row. A copy that goes through the host is one row, too: ``activity`` is
      its half at the source, and ``arrival`` the one at the destination, at whose end it is
      complete; -1 for a direct copy. ``stream`` is the one it was issued on, which is the stream at
      the end that is on its device. At the other end, ``source_stream`` is the last stream that it
      waited for by an event, and ``destination_stream`` the first one that waited for it; without
      one, that of the half, or 0.
    - ``unseen_spans``: when it is not known what the GPUs did, because streams were recorded in
      windows; see `gpuviz.analysis.unseen.unseen_in`. ``idle_gaps`` has nothing of this time.
    - ``names``: what a reader calls the kernels, pools and streams, by their ids in ``strings``,
      ``pools`` and ``streams``. A kernel has its name without scopes, arguments and template
      arguments.
    - ``repeated_calls``: the rows of ``api_calls`` whose correlation id an earlier row has. What a
      correlation id launched belongs to the earlier row: calls within calls return first, and the
      innermost one hands the work to the driver.
    - ``accessed_blocks``: for each row of ``launch_blocks``, in this order, the block that its
      address was in when the call began: the ``event`` that allocated it, counted among the
      ``memory_events`` of its ``device``; -1 if no block was allocated there.
    - ``memory_marks``: moments in ``memory_events``, by the ``device`` and its ``event``:
      allocations that failed (``bytes`` were requested), snapshots, calls of ``empty_cache``
      (``bytes`` were released), and other releases of segments to the device (``memory_returned``),
      of which ``event`` is the first.
    - ``free_levels``: the memory of a ``device`` after its ``event`` in ``memory_events``: bytes of
      the ``largest`` free block, and active bytes ``outside`` known segments, which are not among
      the reserved ones. A row is a change, or the last event; none come before the first segment.
    - ``sampled_work``: for each row of ``host_samples``, in this order, what the thread did: its
      line, and the library's function that this calls, what it waited for, or the collection.
    """
    types = {"enum": pa.dictionary(pa.int8(), pa.utf8())}
    return {
        name: pa.schema(
            [(column, types.get(kind) or getattr(pa, kind)()) for column, kind in columns.items()],
        )
        for name, columns in _COLUMNS.items()
    }


_COLUMNS = {
    "host_waits": {
        "time": "int64",
        "end": "int64",
        "kind": "enum",
        "name": "uint32",
        "call": "int32",
        "synchronization": "int32",
        "thread": "uint32",
        "stack": "uint32",
        "device": "int16",
        "stream": "uint32",
        "waiting_ns": "int64",
        "transfer_ns": "int64",
    },
    "idle_gaps": {
        "device": "int16",
        "stream": "uint32",
        "time": "int64",
        "end": "int64",
        "cause": "enum",
        "activity": "int32",
    },
    "stream_waits": {
        "recorded_stream": "uint32",
        "recorded_time": "int64",
        "waiting_stream": "uint32",
        "resumed_time": "int64",
        "record": "int32",
        "wait": "int32",
    },
    "peer_copies": {
        "time": "int64",
        "end": "int64",
        "activity": "int32",
        "arrival": "int32",
        "stream": "uint32",
        "source_device": "int16",
        "source_stream": "uint32",
        "destination_device": "int16",
        "destination_stream": "uint32",
    },
    "unseen_spans": {"time": "int64", "end": "int64"},
    "names": {"of": "enum", "id": "uint32", "name": "utf8"},
    "repeated_calls": {"call": "int32"},
    "accessed_blocks": {"device": "int16", "event": "int32"},
    "memory_marks": {"device": "int16", "event": "int32", "kind": "enum", "bytes": "int64"},
    "free_levels": {"device": "int16", "event": "int32", "largest": "int64", "outside": "int64"},
    "sampled_work": {"text": "utf8"},
}


def marked(
    derived: Tables,
    tables: Tables,
) -> dict[str, pa.Table]:
    """Return the derived tables in the form stored in files, for `if_current`.

    A mark identifies the tables they were computed from. ``idle_gaps``, which has as many rows as
    ``activities``, is stored as differences, which compress to a quarter of the size: ``pause``
    from the end of the previous row (0 for the first) to ``time``, ``length`` from there to
    ``end``, and ``step`` from the previous row's ``activity`` (0 for the first) to its own. If a
    device has one stream with the same gaps as the device, the stream's rows are omitted.
    """
    mark = {_MARK: _mark(tables)}
    stored = {name: derived[name] for name in schemas()} | {
        "idle_gaps": _differences(_without_only_streams(derived["idle_gaps"], tables))
    }
    return {name: table.replace_schema_metadata(mark) for name, table in stored.items()}


def if_current(
    stored: Stored,
    tables: Tables,
) -> dict[str, pa.Table] | None:
    """Return the derived tables of a file if this version computed them from these tables.

    None if it did not, or if one is missing. Their values are not checked: a file has them only if
    this user's gpuviz wrote them.
    """
    mark = _mark(tables)
    known = {}
    for name in schemas():
        table = stored.get(name)
        if table is None and name in _LATER and not tables[_LATER[name]].num_rows:
            known[name] = schemas()[name].empty_table()
            continue
        if table is None or (table.schema.metadata or {}).get(_MARK) != mark:
            return None
        known[name] = table.replace_schema_metadata(None)
    if not _stored_gaps().equals(known["idle_gaps"].schema):
        return None
    known["idle_gaps"] = _with_only_streams(_from_differences(known["idle_gaps"]), tables)
    conform = all(known[name].schema.equals(schema) for name, schema in schemas().items())
    return known if conform else None


_DIFFERENCES = {
    "time": ("pause", "int64"),
    "end": ("length", "int64"),
    "activity": ("step", "int32"),
}


def _stored_gaps() -> pa.Schema:
    stored = {
        column: pa.field(name, getattr(pa, kind)()) for column, (name, kind) in _DIFFERENCES.items()
    }
    return pa.schema([stored.get(field.name, field) for field in schemas()["idle_gaps"]])


def _without_only_streams(gaps: pa.Table, tables: Tables) -> pa.Table:
    ran_on = _streams_by_device(tables["activities"])
    devices, streams = plain(gaps["device"]), plain(gaps["stream"])
    parts = [plain(gaps[name]) for name in ("time", "end", "activity")]
    parts.append(codes(gaps["cause"], DICTIONARIES["idle_gaps", "cause"]))
    kept = np.ones(len(devices), bool)
    for device in distinct(devices):
        rows = np.flatnonzero(devices == device)
        known = distinct(streams[rows])
        # The device and its only stream.
        if len(known) == 2 and known.tolist() == [0, *ran_on(device)]:  # noqa: PLR2004
            of_device, of_stream = (rows[streams[rows] == stream] for stream in known)
            if all(np.array_equal(part[of_device], part[of_stream]) for part in parts):
                kept[of_stream] = False
    return gaps if kept.all() else rows_at(gaps, np.flatnonzero(kept))


def _with_only_streams(gaps: pa.Table, tables: Tables) -> pa.Table:
    ran_on = _streams_by_device(tables["activities"])
    lanes = []
    for device in np.unique(plain(gaps["device"])):
        rows = gaps.filter(plain(gaps["device"]) == device)
        known = ran_on(device)
        lanes.append(rows)
        if len(known) == 1 and not plain(rows["stream"]).any():
            lanes.append(with_columns(rows, stream=np.full(rows.num_rows, known[0])))
    return pa.concat_tables(lanes) if lanes else gaps


def _streams_by_device(activities: pa.Table) -> Callable[[int], list[int]]:
    """Return a function that returns the streams with activities on a device, ascending."""
    ranges = codes(activities["kind"], ("range",)) == 0
    devices, streams = (plain(activities[name])[~ranges] for name in ("device", "stream"))

    def ran_on(device: int) -> list[int]:
        found: list[int] = distinct(streams[devices == device]).tolist()
        return [stream for stream in found if stream]

    return ran_on


def _differences(gaps: pa.Table) -> pa.Table:
    time, end, activity = (plain(gaps[name]) for name in _DIFFERENCES)
    columns = {
        "time": numbers(time - np.concatenate([[0], end[:-1]])[: len(time)], pa.int64()),
        "end": numbers(end - time, pa.int64()),
        "activity": numbers(np.diff(activity, prepend=np.int32(0)), pa.int32()),
    }
    return pa.table(
        [columns.get(field.name, gaps[field.name]) for field in schemas()["idle_gaps"]],
        schema=_stored_gaps(),
    )


def _from_differences(stored: pa.Table) -> pa.Table:
    pause, length, step = (plain(stored[name]) for name, _ in _DIFFERENCES.values())
    end = np.cumsum(pause + length)
    columns = {"time": end - length, "end": end, "activity": np.cumsum(step, dtype=np.int32)}
    schema = schemas()["idle_gaps"]
    arrays = (
        columns[field.name] if field.name in columns else stored[field.name] for field in schema
    )
    return pa.table(list(arrays), schema=schema)


def _mark(tables: Tables) -> bytes:
    """Return the version, and the row count and sum (modulo 2**64) of each source column."""
    numbers = [DERIVED_VERSION]
    for name, columns in SOURCES.items():
        numbers.append(tables[name].num_rows)
        numbers.extend(_sum(name, column, tables[name][column]) for column in columns)
    return "-".join(f"{number:x}" for number in numbers).encode()


def _sum(table: str, name: str, column: pa.ChunkedArray) -> int:
    """Return the sum of numbers or codes, modulo 2**64, and a checksum of texts."""
    if (table, name) in PRIMARY_DICTIONARIES:
        words = PRIMARY_DICTIONARIES[table, name]
        return int(codes(column, words).sum(dtype=np.int64)) % 2**64
    if pa.types.is_string(column.type):
        return zlib.crc32("\0".join(column.to_pylist()).encode())
    return int(plain(column).sum(dtype=np.int64)) % 2**64
