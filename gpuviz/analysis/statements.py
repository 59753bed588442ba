"""Runs of events and CUDA calls that one line of the program caused."""

from typing import Any

import numpy as np

from gpuviz import _core
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import CallSites
from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData


class Statements:
    """The runs of consecutive memory events and CUDA calls of a thread with the same line.

    A line that a loop repeats without another line in between is one run. An event without a call
    stack belongs to the run around it.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: RecordingData) -> None:
        tables = [recording.tables[name] for name in ("memory_events", "api_calls")]
        self._offset = tables[0].num_rows
        time, thread, stack = (
            np.concatenate([plain(table[name]) for table in tables])
            for name in ("time", "thread", "stack")
        )
        until = np.concatenate([plain(tables[0]["time"]), plain(tables[1]["end"])])
        line = CallSites(recording, stack).numbers("line").astype(np.uint32)
        rows = {"time": time, "end": until, "thread": thread, "stack": stack, "line": line}
        order = np.lexsort((time, thread))
        self._begin, self._end = map(np.asarray, _core.line_runs(rows, order))
        self._recording, self._time, self._thread, self._stack = recording, time, thread, stack
        self._order = order[stack[order] != 0]

    def ends_of_events(self, rows: np.ndarray) -> np.ndarray:
        """Return the ends, in ns, of the runs of some rows of ``memory_events``."""
        ends: np.ndarray = self._end[rows]
        return ends

    def of_calls(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return begin and end, in ns, of the runs of some rows of ``api_calls``."""
        places = self._offset + rows
        return self._begin[places], self._end[places]

    def go_on_until(self, rows: np.ndarray) -> np.ndarray:
        """Return when the lines end that go on in lines that they call, in ns; else -1.

        Such as a call of a model, whose hooks are lines of the program. A line that a loop repeats
        without another one goes on, too.

        Args:
            rows: Rows of ``api_calls``; -1 is none.
        """
        places, order = self._offset + rows, self._order
        found = np.full(len(rows), -1, np.int64)
        known = np.flatnonzero((rows >= 0) & (self._stack[places] != 0))
        after = self._following(places[known])
        following = np.append(order, -1)[after]
        goes_on = (following >= 0) & (self._thread[following] == self._thread[places[known]])
        known, after, following = known[goes_on], after[goes_on], following[goes_on]
        lines, called = self._stack[places[known]], self._stack[following]
        pair, first = numbered(lines, called)
        frames = self._recording.call_stacks.user_frames
        pairs_of: dict[Any, list[int]] = {}
        for number, (line, next_line) in enumerate(
            zip(lines[first].tolist(), called[first].tolist(), strict=True)
        ):
            innermost = frames(line)[:1]
            if innermost and innermost[0] in frames(next_line)[1:]:
                pairs_of.setdefault(innermost[0], []).append(number)
        stacks = distinct(self._stack[order]) if pairs_of else order[:0]
        for frame, pairs in pairs_of.items():
            within = [each for each in stacks.tolist() if frame in frames(each)]
            leaves = np.flatnonzero(~np.isin(self._stack[order], within))
            chosen = np.flatnonzero(np.isin(pair, pairs))
            ends = np.searchsorted(leaves, after[chosen])
            last = np.append(leaves, len(order))[ends] - 1
            found[known[chosen]] = self._time[order[last]]
        return found

    def _following(self, places: np.ndarray) -> np.ndarray:
        """Return where in the order of threads and times the rows after some runs begin."""
        order, found = self._order, np.zeros(len(places), np.int64)
        threads, times = self._thread[order], self._time[order]
        for thread in distinct(self._thread[places]).tolist():
            begin, end = np.searchsorted(threads, [thread, thread + 1])
            own = self._thread[places] == thread
            ends = self._end[places[own]]
            found[own] = begin + np.searchsorted(times[begin:end], ends, side="right")
        return found
