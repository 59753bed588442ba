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

    def ends_of_events(self, rows: "NDArray[Any]") -> "NDArray[Any]":
        """Return the ends, in ns, of the runs of some rows of ``memory_events``."""
        ends: NDArray[Any] = self._end[rows]
        return ends

    def of_calls(self, rows: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return begin and end, in ns, of the runs of some rows of ``api_calls``."""
        places = self._offset + rows
        return self._begin[places], self._end[places]
