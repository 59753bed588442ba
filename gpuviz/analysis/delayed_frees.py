"""Frees that waited for work on other streams, by line of the program."""

from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz._core import stream_name
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

_KEYS = ("device", "allocated_at", "freed_at", "used_at", "own_stream", "stream")
_SUMS = ("frees", "bytes", "byte_seconds")


def delayed_frees(recording: "RecordingData") -> pa.Table:
    """Return the frees that ``record_stream="auto"`` delayed, or ``"report"`` would have.

    One row for each device, lines and streams, most held first. Columns: ``device``,
    ``allocated_at``, ``freed_at`` and ``used_at`` (the lines of the memory's allocation, of its
    free and of its last use on another stream), ``own_stream`` (on which it was allocated) and
    ``stream`` (which used it), ``frees``, ``bytes`` and ``byte_seconds``: bytes times the seconds
    from the free until the allocator saw that the work was done.
    """
    site = recording.call_stacks.call_site
    sums: dict[tuple[object, ...], list[float]] = {}
    for device, rows in recording.manifest.delayed_frees.items():
        for row in rows:
            lines = (site(row[each])[0] for each in ("allocated", "freed", "used"))
            streams = (stream_name(row[each]) for each in ("own_stream", "stream"))
            total = sums.setdefault((int(device), *lines, *streams), [0, 0, 0.0])
            for index, name in enumerate(_SUMS):
                total[index] += row[name]
    rows = sorted(sums.items(), key=lambda each: (-each[1][2], each[0]))
    types = [pa.int16(), *[pa.utf8()] * 5, pa.int64(), pa.int64(), pa.float64()]
    schema = pa.schema(list(zip((*_KEYS, *_SUMS), types, strict=True)))
    values = [dict(zip((*_KEYS, *_SUMS), (*key, *total), strict=True)) for key, total in rows]
    return pa.Table.from_pylist(values, schema)


def delayed_frees_text(recording: "RecordingData") -> str:
    """Return the same in sentences; empty if ``record_stream`` was off."""
    mode = recording.manifest.record_stream
    if mode == "off":
        return ""
    rows = delayed_frees(recording).to_pylist()
    would = "delayed" if mode == "auto" else "would have delayed"
    if not rows:
        return f'record_stream="auto" {would} no frees.'
    frees = format_counted(sum(row["frees"] for row in rows), "free", "frees")
    held = _held(sum(row["byte_seconds"] for row in rows))
    lines = [f'record_stream="auto" {would} {frees}, and held {held}:']
    lines += [
        f"  {format_counted(row['frees'], 'free', 'frees')} of {format_bytes(row['bytes'])} in "
        f"all, {_held(row['byte_seconds'])}: allocated on the {row['own_stream']} at "
        f"{row['allocated_at']}, used on the {row['stream']} at {row['used_at']}, freed at "
        f"{row['freed_at']}"
        for row in rows
    ]
    return "\n".join(lines)


def _held(byte_seconds: float) -> str:
    return f"{byte_seconds / (1 << 20):.3g} MiB s"
