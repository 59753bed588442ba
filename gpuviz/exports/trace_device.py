"""GPU activities in a trace: one track per stream."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from gpuviz.analysis.launches import durations
from gpuviz.analysis.stream_names import stream_names
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES
from gpuviz.exports.trace_rows import EventTable, Trace, mapped, present, times_of

KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_MEMORIES = DICTIONARIES["activities", "source"]
_AROUND_OTHERS = ("graph", "range")
_STREAM_BITS = 32


def add_activities(
    trace: Trace,
    recording: RecordingData,
    devices: Mapping[int, int],
    flows: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Add a track for each stream and the activities on it.

    Args:
        trace: The trace to add to.
        recording: The recording.
        devices: The position of each device's process.
        flows: The number of the flow into each activity; 0 if there is none.
        lines: For each activity, the text number of the line that launched it; -1 if unknown.
    """
    activities = recording.tables["activities"]
    tracks = _stream_tracks(trace, recording, devices)
    kinds = codes(activities["kind"], KINDS)
    for code, kind in enumerate(KINDS):
        rows = np.flatnonzero(kinds == code)
        if not len(rows):
            continue
        chosen = activities.take(rows)
        time = times_of(chosen)
        table = EventTable(
            category=trace.names.position(kind),
            contains=kind in _AROUND_OTHERS,
            time=time,
            end=time + durations(chosen),
            track=tracks[rows],
            name=_names(trace, recording, chosen, kind),
            flow=flows[rows],
            arguments=[
                trace.number("device", plain(chosen["device"]).astype(np.int64)),
                trace.number("stream", plain(chosen["stream"]).astype(np.int64)),
                trace.number("correlation", present(plain(chosen["correlation"]))),
                trace.text("line", lines[rows]),
                *_arguments(trace, recording, chosen, kind),
            ],
        )
        trace.tables.append(table)


def _stream_tracks(
    trace: Trace,
    recording: RecordingData,
    devices: Mapping[int, int],
) -> np.ndarray:
    """Return the track of each activity."""
    activities = recording.tables["activities"]
    device, stream = (plain(activities[name]).astype(np.int64) for name in ("device", "stream"))
    distinct, numbers = np.unique(device << _STREAM_BITS | stream, return_inverse=True)
    names = stream_names(recording)
    tracks = []
    for each in distinct.tolist():
        stream_id = each & (1 << _STREAM_BITS) - 1
        name = names.get(stream_id, f"stream number {stream_id}")
        tracks.append(trace.add_track(name, devices[each >> _STREAM_BITS]))
    of_rows: np.ndarray = np.array(tracks, np.uint32)[numbers]
    return of_rows


def _names(
    trace: Trace,
    recording: RecordingData,
    rows: pa.Table,
    kind: str,
) -> np.ndarray:
    if kind == "memcpy":
        texts = [f"copy {name.replace('_', ' ')}".strip() for name in _COPY_KINDS]
        positions = np.array([trace.names.position(text) for text in texts])
        of_rows: np.ndarray = positions[np.maximum(codes(rows["copy_kind"], _COPY_KINDS), 0)]
        return of_rows
    if kind == "memset":
        return np.full(rows.num_rows, trace.names.position(kind))
    return named(trace, recording, plain(rows["name"]), kind)


def named(
    trace: Trace,
    recording: RecordingData,
    ids: np.ndarray,
    otherwise: str,
) -> np.ndarray:
    """Return the number in ``trace.names`` of each id of ``strings``."""
    distinct, rows = np.unique(ids, return_inverse=True)
    positions = [
        trace.names.position(text or otherwise) for text in texts(recording.tables, distinct)
    ]
    return np.array(positions, np.int64)[rows.reshape(-1)]


def _arguments(
    trace: Trace,
    recording: RecordingData,
    rows: pa.Table,
    kind: str,
) -> list[tuple[int, bool, np.ndarray]]:
    if kind == "kernel":
        return [*_launch_arguments(trace, recording, rows), *_graph_arguments(trace, rows)]
    if kind == "memcpy":
        memories = [trace.argument_texts.position(name) if name else -1 for name in _MEMORIES]
        numbers = dict(enumerate(memories))
        return [
            *_size_arguments(trace, rows),
            *(
                trace.text(f"{side} memory", mapped(codes(rows[side], _MEMORIES), numbers))
                for side in ("source", "destination")
            ),
            *_graph_arguments(trace, rows),
        ]
    if kind == "memset":
        return [*_size_arguments(trace, rows), *_graph_arguments(trace, rows)]
    return _graph_arguments(trace, rows) if kind == "graph" else []


def _size_arguments(trace: Trace, rows: pa.Table) -> list[tuple[int, bool, np.ndarray]]:
    sizes = np.clip(plain(rows["bytes"]), -1, None)
    lengths = durations(rows)
    speeds = np.minimum(sizes * 1e9 / np.maximum(lengths, 1), 2.0**62).astype(np.int64)
    return [
        trace.number("bytes", sizes),
        trace.number("bytes per second", present(speeds, lengths > 0)),
    ]


def _graph_arguments(trace: Trace, rows: pa.Table) -> list[tuple[int, bool, np.ndarray]]:
    nodes = np.minimum(plain(rows["graph_node"]), np.uint64(2**63 - 1))
    return [
        trace.number("graph", present(plain(rows["graph"]))),
        trace.number("graph node", present(nodes)),
    ]


def _launch_arguments(
    trace: Trace,
    recording: RecordingData,
    rows: pa.Table,
) -> list[tuple[int, bool, np.ndarray]]:
    launches = plain(rows["launch"])
    known = recording.tables["launch_configurations"].to_pylist()
    arguments = []
    for name in ("grid", "block"):
        texts = {
            each["id"]: ", ".join(str(each[f"{name}_{axis}"]) for axis in "xyz") for each in known
        }
        positions = {number: trace.argument_texts.position(text) for number, text in texts.items()}
        arguments.append(trace.text(name, mapped(launches, positions)))
    columns = {
        "registers": "registers",
        "static shared memory (bytes)": "static_shared_memory",
        "dynamic shared memory (bytes)": "dynamic_shared_memory",
    }
    for name, column in columns.items():
        values = {each["id"]: each[column] for each in known}
        arguments.append(trace.number(name, mapped(launches, values)))
    return arguments
