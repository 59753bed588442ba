"""Streams at both ends of each copy between devices, as columns of the table ``peer_copies``."""

from typing import Any

import numpy as np

from gpuviz.analysis.peer_copies import peer_copies
from gpuviz.analysis.stream_waits import stream_waits
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import Tables

_LIMIT = 2**60


def peer_copy_streams(tables: Tables) -> dict[str, Any]:
    """Return each copy between devices, with the streams at both of its ends."""
    copies = peer_copies(tables)
    stream = copies.stream
    sides = (copies.source, copies.destination)
    from_stream, to_stream = (np.where(side == copies.device, stream, 0) for side in sides)
    issued = plain(tables["activities"]["correlation"])[copies.activity]
    waits = stream_waits(tables) if len(copies) else {}
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


def _devices_of_streams(tables: Tables) -> np.ndarray:
    """Return the device of the stream of each row of ``synchronizations``.

    CUPTI's device is that of the current context, which may be another one.
    """
    rows, streams = tables["synchronizations"], tables["streams"]
    known = first_rows(plain(streams["id"]), plain(rows["stream"]))
    of_stream = np.append(plain(streams["device"]), -1)[known]
    return np.where(known >= 0, of_stream, plain(rows["device"]))


def _in_order(
    calls: np.ndarray, streams: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return chosen calls that are known, in order, and their streams."""
    rows = np.flatnonzero(chosen & (calls != 0))
    rows = rows[np.argsort(calls[rows], kind="stable")]
    return calls[rows], streams[rows]
