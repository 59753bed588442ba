"""Chrome's Trace Event Format (JSON), for chrome://tracing, Perfetto, Speedscope and others."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gpuviz import _core
from gpuviz.data.recording_data import RecordingData
from gpuviz.exports.trace import build_trace, description
from gpuviz.exports.trace_rows import Trace
from gpuviz.formats.output_path import check_free
from gpuviz.formats.whole_file import write_whole


def write(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a recording atomically as Chrome's JSON; return the path.

    Times are microseconds since the recording's start, with three decimals.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_free(path, overwrite=overwrite)
    trace = build_trace(recording)
    return write_whole(path, lambda file: _write_json(recording, trace, file), overwrite=overwrite)


def _write_json(recording: RecordingData, trace: Trace, file: BinaryIO) -> None:
    manifest = recording.manifest
    about = {
        "recorder": f"gpuviz {manifest.gpuviz_version}".strip(),
        "clock": "microseconds since the recording's start",
        "start_unix_ns": manifest.start_unix_ns,
        "description": description(recording),
    }
    file.write(b'{"displayTimeUnit":"ns","otherData":' + _json(about).encode())
    file.write(b',\n"traceEvents":[\n' + ",\n".join(map(_json, _metadata(trace))).encode())
    _core.write_chrome_rows(
        [table.native() for table in trace.tables],
        [(track.process, track.thread) for track in trace.tracks],
        list(map(_json, trace.names.all())),
        list(map(_json, trace.argument_names.all())),
        list(map(_json, trace.argument_texts.all())),
        file.write,
    )
    for counter in trace.counters:
        track = trace.tracks[counter.track]
        _core.write_chrome_counter(
            track.process, _json(track.name), counter.time, counter.value, file.write
        )
    file.write(b"\n]}\n")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _metadata(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yield the events that name and order processes and threads."""
    for position, track in enumerate(trace.tracks):
        if track.kind == "counter":
            continue
        kind = "process" if track.kind == "process" else "thread"
        place = {"ph": "M", "pid": track.process, "tid": track.thread}
        yield place | {"name": f"{kind}_name", "args": {"name": track.name}}
        yield place | {"name": f"{kind}_sort_index", "args": {"sort_index": position}}
