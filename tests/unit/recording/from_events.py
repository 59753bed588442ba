"""Recordings created from events, without a recorder."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.data.arrays import coded
from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import ACTIONS, DICTIONARIES, FRAMEWORKS, schemas
from gpuviz.recording import Recording

# Statistics of both the live allocator and the events of a recording.
COUNTED = (
    "allocation",
    "allocated_bytes",
    "active",
    "active_bytes",
    "requested_bytes",
    "segment",
    "reserved_bytes",
    "inactive_split",
    "inactive_split_bytes",
)
COUNTERS = ("num_ooms", "num_device_alloc", "num_device_free")


def event_table(columns: Mapping[str, Any]) -> pa.Table:
    """Return ``memory_events`` from columns; actions and frameworks are codes."""
    schema = schemas()["memory_events"]
    arrays = [
        coded(np.asarray(columns[field.name], np.int8), DICTIONARIES["memory_events", field.name])
        if ("memory_events", field.name) in DICTIONARIES
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def rows_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return ``memory_events`` from rows; actions are names, and missing values are 0."""
    rows = list(rows)
    columns = {
        name: [row.get(name, 0) for row in rows] for name in schemas()["memory_events"].names
    }
    columns["action"] = [ACTIONS.index(row["action"]) for row in rows]
    columns["framework"] = [FRAMEWORKS.index(row.get("framework", "")) for row in rows]
    return event_table(columns)


def recorded(log: _core.EventLog, **manifest: Any) -> Recording:
    """Return the recording of a log; stack n is the one frame on line n."""
    columns = log.events()
    handles, streams = np.unique(columns["stream"], return_inverse=True)
    stacks = [int(stack) for stack in np.unique(columns["stack"]) if stack]
    tables = {
        "memory_events": event_table(
            columns
            | {"action": columns["action"].astype(np.int8)}
            | {"time": columns["time_ns"], "stream": streams.astype(np.uint32) + 1},
        ),
        "streams": pa.Table.from_pylist(
            [stream_row(row + 1, 0, int(handle)) for row, handle in enumerate(handles)],
            schema=schemas()["streams"],
        ),
        **one_line_stacks(stacks),
    }
    return Recording(tables, Manifest(**manifest))


def one_line_stacks(ids: list[int]) -> dict[str, pa.Table]:
    """Return ``stacks`` and ``frames`` in which stack n is the one frame on line n."""
    frames = [
        {"id": n, "name": "step", "filename": "run.py", "line": n, "cell": 0, "source": f"{n}"}
        for n in ids
    ]
    stacks = [{"id": n, "frames": [n]} for n in ids]
    known = schemas()
    return {
        "frames": pa.Table.from_pylist(frames, schema=known["frames"]),
        "stacks": pa.Table.from_pylist(stacks, schema=known["stacks"]),
    }


def counted(stats: Mapping[str, int]) -> dict[str, int]:
    """Return the statistics that can be derived from events."""
    return {
        key: value
        for key, value in stats.items()
        if key.split(".")[0] in COUNTED or key in COUNTERS
    }


def live_segments(snapshot: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a live allocator's snapshot without the requested sizes of inactive blocks."""
    return [_comparable(segment, lambda entry: entry["stack"]) for segment in snapshot]


def recorded_segments(snapshot: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a recording's snapshot in the form of `live_segments`."""
    return [_comparable(segment, _line) for segment in snapshot]


def _line(entry: dict[str, Any]) -> int:
    return entry["frames"][0]["line"] if entry["frames"] else 0


def _comparable(segment: dict[str, Any], stack_of: Any) -> dict[str, Any]:
    blocks = [
        {"address": block["address"], "size": block["size"], "state": block["state"]}
        | (
            {"requested_size": block["requested_size"], "stack": stack_of(block)}
            if block["state"] != "inactive"
            else {}
        )
        for block in segment["blocks"]
    ]
    left_out = {"stack", "frames", "blocks"}
    plain = {key: value for key, value in segment.items() if key not in left_out}
    if not segment["is_expandable"]:
        plain["stack"] = stack_of(segment)
    return plain | {"blocks": blocks}
