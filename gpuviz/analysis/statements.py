"""Runs of events and CUDA calls that one line of the program caused."""

from typing import TYPE_CHECKING, Any

import numpy as np

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
        site = CallSites(recording, stack).numbers("line").astype(np.int64)
        order = np.lexsort((time, thread))
        order = order[stack[order] != 0]
        site, thread = site[order], thread[order]
        changes = np.flatnonzero((site[1:] != site[:-1]) | (thread[1:] != thread[:-1])) + 1
        starts = np.concatenate([[0], changes]).astype(np.int64)
        run = np.zeros(len(order), np.int64)
        run[changes] = 1
        run = np.cumsum(run)
        begin = np.minimum.reduceat(time[order], starts) if len(order) else time[:0]
        end = np.maximum.reduceat(until[order], starts) if len(order) else time[:0]
        self._begin, self._end = time.copy(), until.copy()
        self._begin[order], self._end[order] = begin[run], end[run]

    def ends_of_events(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return the ends, in ns, of the runs of some rows of ``memory_events``."""
        ends: NDArray[Any] = self._end[rows]
        return ends

    def of_calls(self, rows: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return begin and end, in ns, of the runs of some rows of ``api_calls``."""
        places = self._offset + rows
        return self._begin[places], self._end[places]
