"""Memory of every device at a moment."""

import numpy as np

from gpuviz._core import MemoryState
from gpuviz.analysis.initial_state import allocated_bytes, initial_state
from gpuviz.analysis.levels import final_state
from gpuviz.analysis.moments import as_ns
from gpuviz.analysis.peak import peak_and_state
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import Moment, RecordingData


def state_at(recording: RecordingData, at: Moment = None, device: int | None = None) -> MemoryState:
    """Return the state of memory at a moment.

    Args:
        recording: The recording.
        at: A time in ns (events at exactly that time are included), ``peak`` or ``end``. The state
            at the end is shared and must not be modified.
        device: The device of the peak; all devices together if None.

    Raises:
        ValueError: ``at`` has another value.
    """
    if at == "peak":
        return _state_at_peak(recording, device)
    if at is None or at == "end":
        return final_state(recording)
    return _state_until(recording, as_ns(at, "at", 'a time in ns, "peak" or "end"'))


def _state_until(recording: RecordingData, time: int) -> MemoryState:
    state = initial_state(recording)
    state.apply(recording.memory_columns, recording.manifest.initial_events, until=time)
    return state


def _state_at_peak(recording: RecordingData, device: int | None) -> MemoryState:
    peak, at_peak = peak_and_state(recording, device)
    if at_peak is not None:
        return at_peak
    state = _state_until(recording, peak.time_ns - 1)
    times = plain(recording.tables["memory_events"]["time"])
    # Several events may share the peak's time; the peak may lie between two of them.
    for row in np.flatnonzero(times == peak.time_ns).tolist():
        if allocated_bytes(state, device) == peak.bytes:
            break
        if row >= recording.manifest.initial_events:
            state.apply(recording.memory_columns, row, row + 1)
    return state
