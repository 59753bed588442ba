"""Whether the work after a wait needs what the waiting line has computed."""

from itertools import pairwise

import numpy as np

from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.waits.waits import Waits
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import plain
from gpuviz.data.tables import DICTIONARIES

_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
_WRITE = DICTIONARIES["launch_blocks", "mode"].index("write")
# Of the waits, spread over all, as many say what the others do.
_MOST_TRIED = 64
# Of the GPU's time between two waits. As little work, launched before a wait, would not hide it.
_LEAST_SHARE = 0.25


def is_needed_by_all(schedule: Schedule, waits: Waits) -> bool:
    """Return whether most work between two waits depends on what the line computes.

    So it is of a line that solves a system in each step of a simulation: nothing else could be
    launched while the host waits in it. Work depends on a result if it reads an array that was
    written by the line, or by work that depends on it. False if it is unknown what work uses.
    """
    used = schedule.touches
    if used is None:
        return False
    calls = schedule.recording.tables["api_calls"]
    stacks, times = plain(calls["stack"]), plain(calls["time"])
    lines = line_numbers(schedule.recording, np.append(stacks[used.call], waits.stack))
    has_call = schedule.call >= 0
    durations = (schedule.end - schedule.begin)[has_call]
    taken = np.bincount(schedule.call[has_call], weights=durations, minlength=len(times))
    waiting = np.searchsorted(times[used.call], np.unique(times[waits.calls]), side="right")
    chosen = np.linspace(0, len(waiting) - 2, min(len(waiting) - 1, _MOST_TRIED)).astype(np.int64)
    other = dependent = 0.0
    for place in np.unique(chosen).tolist():
        first, middle, last = (
            int(waiting[each]) if each >= 0 else 0 for each in range(place - 1, place + 2)
        )
        rows = np.arange(first, last)
        is_own = lines[:-1][rows] == lines[-1]
        results = set(used.block[rows[is_own & (rows < middle)]].tolist())
        later = rows[(rows >= middle) & ~is_own]
        depends = _dependent(used, later, results)
        spent = taken[used.call[later]] / np.maximum(_counts(used.call[later]), 1)
        dependent += float(spent[depends].sum())
        other += float(spent[~depends].sum())
    return dependent > 0 and other < _LEAST_SHARE * (dependent + other)


def _counts(calls: np.ndarray) -> np.ndarray:
    """Return for each touch how many its call has."""
    _, place, count = np.unique(calls, return_inverse=True, return_counts=True)
    found: np.ndarray = count[place]
    return found


def _dependent(used: Touches, rows: np.ndarray, results: set[int]) -> np.ndarray:
    """Return whether each touch is of work that depends on blocks; ``results`` grows by its own."""
    depends = np.zeros(len(rows), bool)
    calls, blocks, modes = (each[rows] for each in (used.call, used.block, used.mode))
    starts = np.flatnonzero(np.append(True, calls[1:] != calls[:-1])) if len(rows) else rows
    for start, stop in pairwise([*starts.tolist(), len(rows)]):
        of_work = list(zip(blocks[start:stop].tolist(), modes[start:stop].tolist(), strict=True))
        depends[start:stop] = any(mode != _WRITE and block in results for block, mode in of_work)
        written = {block for block, mode in of_work if mode != _READ}
        if depends[start]:
            results |= written
        else:
            results -= {block for block, mode in of_work if mode == _WRITE}
    return depends
