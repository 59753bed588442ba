"""Runs of events and CUDA calls that one line of the program caused."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz import _core
from gpuviz.analysis.launches import CallSites
from gpuviz.data.columns import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData


class Statements:
    """The runs of consecutive memory events and CUDA calls of a thread with the same line.

    A line that a loop repeats without another line in between is one run. An event without a call
    stack belongs to the run around it.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: "RecordingData") -> None:
        tables = [recording.tables[name] for name in ("memory_events", "api_calls")]
        self._offset = tables[0].num_rows
        time, thread, stack = (
            np.concatenate([plain(table[name]) for table in tables])
            for name in ("time", "thread", "stack")
        )
        until = np.concatenate([plain(tables[0]["time"]), plain(tables[1]["end"])])
        line = CallSites(recording, stack).numbers("line").astype(np.uint32)
        rows = {"time": time, "end": until, "thread": thread, "stack": stack, "line": line}
        runs = _core.line_runs(rows, np.lexsort((time, thread)))
        self._begin, self._end = map(np.asarray, runs)
        self._recording, self._thread, self._stack = recording, thread, stack
        known = np.flatnonzero(stack != 0)
        self._order = known[np.lexsort((time[known], thread[known]))]
        self._time = time

    def ends_of_events(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return the ends, in ns, of the runs of some rows of ``memory_events``."""
        ends: NDArray[Any] = self._end[rows]
        return ends

    def of_calls(self, rows: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return begin and end, in ns, of the runs of some rows of ``api_calls``."""
        places = self._offset + rows
        return self._begin[places], self._end[places]

    def go_on_until(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return when the lines end that go on in lines that they call, in ns; else -1.

        Such as a call of a model, whose hooks are lines of the program. A line that a loop repeats
        without another one goes on, too.

        Args:
            rows: Rows of ``api_calls``; -1 is none.
        """
        places, order = self._offset + rows, self._order
        found = np.full(len(rows), -1, np.int64)
        moments, of_row = np.unique(
            np.append(self._time[order], self._end[places]), return_inverse=True
        )
        threads = np.append(self._thread[order], self._thread[places]).astype(np.int64)
        keys = threads * (len(moments) + 1) + of_row
        after = np.searchsorted(keys[: len(order)], keys[len(order) :], side="right")
        following = np.append(order, -1)[after]
        is_known = (rows >= 0) & (self._stack[places] != 0) & (following >= 0)
        known = np.flatnonzero(is_known)
        known = known[self._thread[following[known]] == self._thread[places[known]]]
        pairs, of_pair = np.unique(
            np.stack([self._stack[places[known]], self._stack[following[known]]]),
            axis=1,
            return_inverse=True,
        )
        frames = self._recording.call_stacks.user_frames
        stacks = np.unique(self._stack[order])
        for number, (line, called) in enumerate(pairs.T.tolist()):
            innermost = frames(line)[:1]
            if innermost and innermost[0] in frames(called)[1:]:
                within = [each for each in stacks.tolist() if innermost[0] in frames(each)]
                leaves = np.flatnonzero(~np.isin(self._stack[order], within))
                chosen = known[of_pair.ravel() == number]
                ends = np.searchsorted(leaves, after[chosen])
                last = np.append(leaves, len(order))[ends] - 1
                found[chosen] = self._time[order[last]]
        return found
