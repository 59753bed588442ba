"""The request that shows why an allocator has reserved so much memory."""

from functools import cached_property
from typing import Any

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.host_lines import line_of
from gpuviz.analysis.fragmentation import Fragmentation, fragmentation_of
from gpuviz.analysis.initial_state import initial_state
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes

# Events by which an allocator reserves memory.
GROWING = ("segment_alloc", "segment_map")
_SHRINKING = ("segment_free", "segment_unmap")
# Half of the window that shows a moment, as a share of the recording, and the least ns.
_AROUND, _LEAST_NS = 0.02, 1000


class DecisiveRequest:
    """A request of memory, and what was reserved when it was made.

    Args:
        recording: The recording.
        device: Ordinal.
        row: The row of ``memory_events`` of the request, which was served or failed.

    Attributes:
        row: The same.
    """

    def __init__(self, recording: RecordingData, device: int, row: int) -> None:
        self._recording, self._device, self.row = recording, device, row

    @cached_property
    def memory(self) -> Fragmentation:
        """The reserved memory when the request was made, or when it failed after all."""
        actions, of_device = _actions(self._recording), _are_of(self._recording, self._device)
        changes = [ACTIONS.index(name) for name in ACTIONS if name.startswith("segment_")]
        row = self.row
        if actions[row] != ACTIONS.index("oom"):
            while row > 0 and of_device[row - 1] and actions[row - 1] in changes:
                row -= 1
        return memory_before(self._recording, self._device, row)

    @property
    def bytes(self) -> int:
        """The bytes of the request."""
        return int(self._event["requested_size"])

    @property
    def stream(self) -> int:
        """The id of the stream of the request."""
        return int(self._event["stream"])

    @property
    def line(self) -> Line:
        """The line that made the request, with the bytes."""
        return line_of(self._recording, self._event["stack"], format_bytes(self.bytes))

    @property
    def evidence(self) -> Evidence:
        """The request, and a window in ns that shows it."""
        start, end = self._recording.time_range
        half = max(int((end - start) * _AROUND), _LEAST_NS)
        time = self._event["time"]
        window = (max(time - half, start), time + half)
        return Evidence("memory_events", (self.row,), window)

    @cached_property
    def _event(self) -> dict[str, Any]:
        row: dict[str, Any] = (
            self._recording.tables["memory_events"].slice(self.row, 1).to_pylist()[0]
        )
        return row


def growing_request(recording: RecordingData, device: int, until: int) -> int:
    """Return the row of the request that grew the reserved memory most, until some request.

    What was free already when memory was reserved is what a better fit would save. If nothing grew
    in the recording, it is the last request.

    Args:
        recording: The recording.
        device: Ordinal.
        until: The last row that counts: a request.
    """
    actions, of_device = _actions(recording), _are_of(recording, device)
    grown = np.isin(actions, [ACTIONS.index(name) for name in GROWING])
    rows = np.flatnonzero(of_device & grown)
    rows = rows[(rows >= recording.manifest.initial_events) & (rows <= until)]
    if not len(rows):
        return until
    sizes = plain(recording.tables["memory_events"]["size"])
    wasted = np.minimum(sizes, _free_before(recording, device))[rows]
    largest = rows[len(rows) - 1 - int(np.argmax(wasted[::-1]))]
    served = np.flatnonzero(of_device & (actions == ACTIONS.index("alloc")))
    after = served[np.searchsorted(served, largest) :]
    return int(after[0]) if len(after) else until


def memory_before(recording: RecordingData, device: int, row: int) -> Fragmentation:
    """Return what was reserved on a device before an event."""
    state, first = initial_state(recording), recording.manifest.initial_events
    state.apply(recording.memory_columns, first, max(row, first))
    return fragmentation_of(state, device)


def _free_before(recording: RecordingData, device: int) -> np.ndarray:
    """Return the bytes that were reserved but not in use before each event."""
    actions = _actions(recording)
    size = plain(recording.tables["memory_events"]["size"])
    change = np.zeros(len(size), np.int64)
    for names, sign in ((GROWING, 1), (_SHRINKING, -1), (("free_completed",), 1)):
        chosen = np.isin(actions, [ACTIONS.index(name) for name in names])
        change[chosen] = sign * size[chosen]
    allocated = actions == ACTIONS.index("alloc")
    change[allocated] = -size[allocated]
    change[~_are_of(recording, device)] = 0
    free: np.ndarray = np.cumsum(change) - change
    return free


def _actions(recording: RecordingData) -> np.ndarray:
    return codes(recording.tables["memory_events"]["action"], ACTIONS)


def _are_of(recording: RecordingData, device: int) -> np.ndarray:
    there: np.ndarray = plain(recording.tables["memory_events"]["device"]) == device
    return there
