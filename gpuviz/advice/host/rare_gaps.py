"""Gaps between CUDA calls that are no work of the program in each of its rounds."""

from functools import cached_property

import numpy as np

from gpuviz.advice.host.host_gaps import LONG_NS, HostGaps
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import CallSites, user_frames
from gpuviz.analysis.sampled_work import Work
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData

# The first time often includes preparation; as a multiple of the longest later time.
_MOST_OF_FIRST = 2
# Of the rounds of a step of the program, such as work that is done every tenth time.
_LEAST_OF_ROUNDS = 0.1


def without_first(calls: np.ndarray, time_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return gaps of a place without the first if that is much longer than all later ones.

    Args:
        calls: The calls after the gaps, in the order of their rows.
        time_ns: How long each gap is, or what was sampled in it.
    """
    if len(calls) and time_ns[0] > _MOST_OF_FIRST * time_ns[1:].max(initial=0):
        return calls[1:], time_ns[1:]
    return calls, time_ns


def are_frequent(recording: RecordingData, gaps: HostGaps) -> np.ndarray:
    """Return for each call whether a tenth of the gaps before its step of the program are long.

    A step is given by what this call and the one before do, and by their call stacks. What the host
    does in a program, it does in the same step again; a pause of Python, of another thread or of
    another program occurs in any of them.
    """
    tables = recording.tables
    table, activities = tables["api_calls"], tables["activities"]
    rows = first_rows(plain(activities["correlation"]), plain(table["correlation"]))
    names = plain(table["name"]).astype(np.int64)
    # Kernels and calls are numbered apart.
    launched = np.append(plain(activities["name"]).astype(np.int64), 0)[rows]
    work = np.where(rows >= 0, 2 * launched + 1, 2 * names)
    calls, _ = numbered(work, plain(table["stack"]))
    step, _ = numbered(calls, calls[gaps.previous])
    count = np.bincount(step)
    share = np.bincount(step, gaps.length >= LONG_NS) / count
    frequent: np.ndarray = (share >= _LEAST_OF_ROUNDS)[step]
    return frequent


class LineRuns:
    """The runs of lines of the program that make calls.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: RecordingData) -> None:
        self._calls = recording.tables["api_calls"]
        self._recording = recording

    def are_stalls(self, work: Work, calls: np.ndarray) -> bool:
        """Return whether gaps in which a line or a library works are in few runs of their lines.

        What a library does in each run is the program's work; what it does in a few, as where cuDNN
        tries kernels for arguments of a new shape, prepares the others. A line that launches the
        next work itself, and mostly without a gap, has no such work either: its thread did not run.

        Args:
            work: What was sampled in the gaps.
            calls: The calls after the gaps, of which a tenth of the runs are not few.
        """
        lines, run = self._of_calls
        if not work.is_of_launches and (lines[calls] != self._line_of(work.stack)).any():
            return False
        of_lines = np.isin(lines, lines[calls])
        every, some = (len(np.unique(run[rows])) for rows in (of_lines, calls))
        return some < _LEAST_OF_ROUNDS * every

    def _line_of(self, stack: int) -> int:
        """Return the number of the line of a call stack; -1 of one without calls."""
        lines, _ = self._of_calls
        own = user_frames(self._recording.tables, plain(self._calls["stack"]))
        line = user_frames(self._recording.tables, np.array([stack]))[0]
        calls = np.flatnonzero(own == line)
        return int(lines[calls[0]]) if len(calls) else -1

    @cached_property
    def _of_calls(self) -> tuple[np.ndarray, np.ndarray]:
        """The line of each call, and the number of the run of that line."""
        time, thread = (plain(self._calls[name]) for name in ("time", "thread"))
        lines = CallSites(self._recording, plain(self._calls["stack"])).numbers("line")
        order = np.lexsort((time, thread))
        changes = (np.diff(lines[order]) != 0) | (np.diff(thread[order].astype(np.int64)) != 0)
        run = np.empty(len(order), np.int64)
        run[order] = np.cumsum(np.append(True, changes)[: len(order)])
        return lines, run
