"""GPU activities of the original recording in a replay."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpuviz.analysis.launches import calls_of
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, Tables
from gpuviz.recording import Recording

# Memory operations are not copied, because the replay has its own segments.
CARRIED = (
    "strings",
    "streams",
    "launch_configurations",
    "ranges",
    "activities",
    "api_calls",
    "synchronizations",
    "graph_calls",
    "overheads",
    "host_samples",
)
NOTE = "GPU activity is as recorded; allocations were replayed."
AT_OTHER_SPEED = (
    "GPU activities and ranges are omitted: a replay has them only without pauses or at speed 1."
)
LOST_EVENTS = (
    "GPU activities and ranges are omitted: the replay lost events, so they no longer match."
)

_OUTCOMES = [ACTIONS.index(name) for name in ("alloc", "oom")]
_ASKED = [*_OUTCOMES, ACTIONS.index("free_requested"), ACTIONS.index("record_stream")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The operations of a replay on one device: allocations, frees and stream uses.

    Attributes:
        rows: The row of each operation in the recording's ``memory_events``.
        blocks: The number of the block of each operation.
        allocates: Whether each operation is an allocation.
    """

    rows: np.ndarray
    blocks: np.ndarray
    allocates: np.ndarray


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows of a replay's ``memory_events``, and the rows of the recording that they repeat."""

    rows: np.ndarray
    origins: np.ndarray


def has_activities(recording: RecordingData) -> bool:
    """Return whether a recording has rows that a replay cannot reproduce."""
    return any(recording.tables[name].num_rows for name in ("activities", "api_calls", "ranges"))


def with_activities(
    replayed: Recording,
    recording: RecordingData,
    asked: Mapping[int, Asked],
) -> Recording:
    """Return a replay at speed 1 on the recording's clock, with the recording's activities.

    Memory events get the times, ranges and stream ids of the events that they repeat; the
    allocator's own events stay between the same two events. If a stream's handle was reused, events
    refer to the last stream with this handle. ``launch_blocks`` get the replay's addresses.

    Args:
        replayed: The replay.
        recording: The replayed recording.
        asked: The replayed operations, by device.
    """
    if not has_activities(recording):
        return replayed
    pairs = {device: _pairs(replayed, device, each) for device, each in asked.items()}
    aligned = {device: each for device, each in pairs.items() if each is not None}
    if len(aligned) < len(pairs):
        return replayed.with_note(LOST_EVENTS)
    tables = {
        "memory_events": _memory_events(replayed, recording, aligned),
        "device_memory": _device_memory(replayed, recording, aligned),
    }
    return _with_tables(replayed, recording, tables, list(aligned.values()))


def with_aligned_activities(
    replayed: Recording, recording: RecordingData, origins: np.ndarray
) -> Recording:
    """Return a replay on the recording's clock, with the recording's activities.

    Args:
        replayed: The replay, with the times, ranges and stream ids of the recording.
        recording: The replayed recording.
        origins: The row of the recording whose repetition caused each memory event.
    """
    if not has_activities(recording):
        return replayed
    actions = codes(replayed.tables["memory_events"]["action"], ACTIONS)
    rows = np.flatnonzero(np.isin(actions, _ASKED))
    return _with_tables(replayed, recording, {}, [_Pairs(rows, origins[rows])])


def _with_tables(
    replayed: Recording,
    recording: RecordingData,
    changed: Tables,
    pairs: list[_Pairs],
) -> Recording:
    carried = {name: recording.tables[name] for name in CARRIED}
    tables = {**replayed.tables, **carried, **changed}
    tables["launch_blocks"] = _launch_blocks(replayed, recording, pairs)
    origin = recording.manifest
    manifest = replace(
        replayed.manifest,
        duration_ns=origin.duration_ns,
        dropped_activities=origin.dropped_activities,
        dropped_oldest_activities=origin.dropped_oldest_activities,
    )
    return Recording(tables, manifest).with_note(NOTE)


def _pairs(replayed: Recording, device: int, asked: Asked) -> _Pairs | None:
    """Return the pairs of rows; None if the replay lacks operations."""
    events = replayed.tables["memory_events"]
    actions = codes(events["action"], ACTIONS)
    rows = np.flatnonzero((plain(events["device"]) == device) & np.isin(actions, _ASKED))
    outcomes = actions[rows][np.isin(actions[rows], _OUTCOMES)]
    if len(outcomes) != asked.allocates.sum():
        return None
    # Allocations that failed in the replay have no free.
    failed = asked.blocks[asked.allocates][outcomes == ACTIONS.index("oom")]
    origins = asked.rows[asked.allocates | ~np.isin(asked.blocks, failed)]
    return _Pairs(rows, origins) if len(origins) == len(rows) else None


def _memory_events(
    replayed: Recording,
    recording: RecordingData,
    aligned: Mapping[int, _Pairs],
) -> pa.Table:
    events, before = replayed.tables["memory_events"], recording.tables["memory_events"]
    times = _retimed(events, replayed, recording, aligned)
    ranges = np.zeros(events.num_rows, np.uint32)
    for pairs in aligned.values():
        ranges[pairs.rows] = plain(before["range"])[pairs.origins]
        times[pairs.rows] = _ascending(before, pairs.origins)
    streams = _stream_ids(replayed, recording)[plain(events["stream"])]
    return with_columns(events, time=times, range=ranges, stream=streams)


def _device_memory(
    replayed: Recording,
    recording: RecordingData,
    aligned: Mapping[int, _Pairs],
) -> pa.Table:
    samples = replayed.tables["device_memory"]
    return with_columns(samples, time=_retimed(samples, replayed, recording, aligned))


def _retimed(
    table: pa.Table,
    replayed: Recording,
    recording: RecordingData,
    aligned: Mapping[int, _Pairs],
) -> np.ndarray:
    """Return the times of a replay's rows on the recording's clock, not below 0."""
    times, devices = plain(table["time"]).copy(), plain(table["device"])
    events = replayed.tables["memory_events"]
    for device, pairs in aligned.items():
        if len(pairs.rows):
            at = np.maximum.accumulate(plain(events["time"])[pairs.rows])
            later = _ascending(recording.tables["memory_events"], pairs.origins) - at
            here = devices == device
            times[here] += np.rint(np.interp(times[here], at, later)).astype(np.int64)
    result: np.ndarray = np.maximum(times, 0)
    return result


def _ascending(events: pa.Table, rows: np.ndarray) -> np.ndarray:
    """Return the times of rows, corrected to never decrease."""
    ascending: np.ndarray = np.maximum.accumulate(plain(events["time"])[rows])
    return ascending


def _stream_ids(replayed: Recording, recording: RecordingData) -> np.ndarray:
    """Return the recording's stream id for each stream id of a replay."""
    used = set(recording.tables["memory_events"]["stream"].unique().to_pylist())
    known = {
        (row["device"], row["handle"]): row["id"]
        for row in recording.tables["streams"].to_pylist()
        if row["id"] in used
    }
    rows = replayed.tables["streams"].to_pylist()
    ids = np.zeros(1 + max((row["id"] for row in rows), default=0), np.uint32)
    for row in rows:
        ids[row["id"]] = known.get((row["device"], row["handle"]), 0)
    return ids


def _launch_blocks(
    replayed: Recording,
    recording: RecordingData,
    pairs: list[_Pairs],
) -> pa.Table:
    """Return the recording's rows with the replay's addresses, without rows of unknown blocks."""
    table = recording.tables["launch_blocks"]
    if not table.num_rows:
        return table
    calls = calls_of(recording.tables, plain(table["correlation"]))
    table = table.filter(calls >= 0)
    launched = plain(recording.tables["api_calls"]["time"])[calls[calls >= 0]]
    events, before = replayed.tables["memory_events"], recording.tables["memory_events"]
    origins = np.concatenate([[], *(each.origins for each in pairs)]).astype(np.int64)
    rows = np.concatenate([[], *(each.rows for each in pairs)]).astype(np.int64)
    alloc = ACTIONS.index("alloc")
    allocated = codes(before["action"], ACTIONS)[origins] == alloc
    origins, rows = origins[allocated], rows[allocated]
    addresses, times = (plain(before[name])[origins] for name in ("address", "time"))
    blocks = plain(table["block"])
    latest = _latest(addresses, times, blocks, launched)
    known = latest >= 0
    # An allocation that failed in the replay has no address there.
    known[known] = codes(events["action"], ACTIONS)[rows[latest[known]]] == alloc
    moved = plain(events["address"])[rows[latest[known]]]
    offsets = plain(table["address"])[known] - blocks[known]
    return with_columns(table.filter(known), block=moved, address=moved + offsets)


def _latest(
    addresses: np.ndarray,
    times: np.ndarray,
    wanted: np.ndarray,
    moments: np.ndarray,
) -> np.ndarray:
    """Return the position of the last allocation of each address up to a time; -1 if none."""
    both = np.concatenate([addresses, wanted])
    is_wanted = np.arange(len(both)) >= len(addresses)
    order = np.lexsort((is_wanted, np.concatenate([times, moments]), both))
    # Of the rows sorted so far, the last allocation; -1 before the first.
    last = np.where(is_wanted[order], -1, np.arange(len(both)))
    last = np.maximum.accumulate(last)
    found = np.where(last >= 0, order[last], -1)
    found[(found >= 0) & (both[found] != both[order])] = -1
    result = np.empty(len(both), np.int64)
    result[order] = found
    return result[len(addresses) :]
