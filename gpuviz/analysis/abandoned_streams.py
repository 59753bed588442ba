"""Streams that serve one piece of work each, one after another."""

import numpy as np

from gpuviz.analysis.launches import durations
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS

IN_TURN = 4
"""So many streams in turn keep as much work apart as streams made for one piece of work each."""
# Fewer streams may be a fixed set.
_LEAST = 2 * IN_TURN
_NONE = np.zeros(0, np.int64)


def abandoned_streams(recording: RecordingData, device: int) -> np.ndarray:
    """Return the ids of streams on which nothing is allocated once the next one has begun.

    In the order of their first allocations. Empty if they are fewer than twice `IN_TURN`, or if
    more of them than `IN_TURN` have work at the same time, or if one still works when the
    `IN_TURN`-th after it begins, which would wait for it on a shared stream; or if no work was
    recorded.
    """
    if recording.tables["streams"].num_rows < _LEAST:
        return _NONE
    found = _one_after_another(recording, device)
    if len(found) < _LEAST or not _can_take_turns(recording, found):
        return _NONE
    return found


def in_turn(recording: RecordingData, device: int) -> np.ndarray:
    """Return the handles of all streams if `IN_TURN` of the abandoned ones did the work of all."""
    known = recording.tables["streams"]
    handles = plain(known["handle"]).copy()
    rows = {stream: row for row, stream in enumerate(known["id"].to_pylist())}
    replaced = [rows[stream] for stream in abandoned_streams(recording, device).tolist()]
    for number, row in enumerate(replaced):
        handles[row] = handles[replaced[number % IN_TURN]]
    return handles


def _one_after_another(recording: RecordingData, device: int) -> np.ndarray:
    events = recording.tables["memory_events"]
    is_alloc = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    streams = plain(events["stream"])[is_alloc & (plain(events["device"]) == device)]
    ids = distinct(streams)
    if len(ids) < _LEAST:
        return _NONE
    number = np.searchsorted(ids, streams)
    places = np.arange(len(streams))
    first, last = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    first[number[::-1]], last[number] = places[::-1], places
    ids, last = ids[np.argsort(first)], last[np.argsort(first)]
    first = np.sort(first)
    begun = np.searchsorted(first, last, side="right")
    alone: np.ndarray = ids[begun == np.arange(len(ids)) + 1]
    return alone


def _can_take_turns(recording: RecordingData, streams: np.ndarray) -> bool:
    """Return whether no work of some streams would wait if `IN_TURN` did it; not if unknown."""
    activities = recording.tables["activities"]
    ids = np.sort(streams)
    number = np.searchsorted(ids, plain(activities["stream"]))
    rows = np.flatnonzero(np.append(ids, -1)[number] == plain(activities["stream"]))
    if len(distinct(number[rows])) < len(ids):
        return False
    begin = plain(activities["time"])[rows]
    end = begin + durations(activities)[rows]
    starts = np.full(len(ids), np.iinfo(np.int64).max)
    ends = np.zeros(len(ids), np.int64)
    np.minimum.at(starts, number[rows], begin)
    np.maximum.at(ends, number[rows], end)
    in_order = np.searchsorted(ids, streams)
    if (ends[in_order[:-IN_TURN]] > starts[in_order[IN_TURN:]]).any():
        return False
    starts = np.sort(starts)
    ended = np.searchsorted(np.sort(ends), starts, side="right")
    return bool((np.arange(1, len(starts) + 1) - ended).max() <= IN_TURN)
