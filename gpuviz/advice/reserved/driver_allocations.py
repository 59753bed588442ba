"""The driver's calls by which an allocator reserves memory for requests."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS

_ALLOC = "cuMemAlloc_v2"


def calls_named(schedule: Schedule, name: str) -> np.ndarray:
    """Return the rows of ``api_calls`` with a name, in the order of time."""
    tables = schedule.recording.tables
    strings = tables["strings"]
    known = dict(zip(strings["text"].to_pylist(), strings["id"].to_pylist(), strict=True))
    rows = np.flatnonzero(plain(tables["api_calls"]["name"]) == known.get(name, -1))
    return rows[np.argsort(plain(tables["api_calls"]["time"])[rows], kind="stable")]


def calls_for_segments(schedule: Schedule, rows: np.ndarray) -> np.ndarray:
    """Return the call that made each of some segments, rows of ``memory_events``; -1 if unknown.

    A segment is recorded after it was made.
    """
    tables, made = schedule.recording.tables, calls_named(schedule, _ALLOC)
    ends = schedule.returned[made]
    times = plain(tables["memory_events"]["time"])[rows]
    found: np.ndarray = np.append(made, -1)[np.searchsorted(ends, times, side="right") - 1]
    return found


def calls_for_allocations(schedule: Schedule, rows: np.ndarray) -> np.ndarray:
    """Return the calls that made the segments for some allocations, rows of ``memory_events``."""
    events = schedule.recording.tables["memory_events"]
    before = rows[rows > 0] - 1
    actions, devices = codes(events["action"], ACTIONS), plain(events["device"])
    is_made = actions[before] == ACTIONS.index("segment_alloc")
    is_made &= devices[before] == devices[before + 1]
    calls = calls_for_segments(schedule, before[is_made])
    found: np.ndarray = np.unique(calls[calls >= 0])
    return found
