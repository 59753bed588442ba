"""Memory of every device at a moment."""

from typing import TYPE_CHECKING

from gpuviz._core import MemoryColumns, MemoryState
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.moments import as_ns
from gpuviz.recording.tables import ACTIONS, FRAMEWORKS

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.recording.recording import Moment, Recording

# Of `memory_events`; what the state of memory follows from, but for ``action`` and ``framework``.
NUMBER_COLUMNS = (
    "time",
    "address",
    "size",
    "requested_size",
    "device",
    "stream",
    "pool",
    "stack",
    "thread",
)
ALLOCATED = 1
PENDING_FREE = 2


def memory_columns(events: "pa.Table") -> MemoryColumns:
    """Return the columns of ``memory_events`` for the native core; one chunk is not copied."""
    numbers = {name: plain(events[name]) for name in NUMBER_COLUMNS}
    return MemoryColumns(
        action=codes(events["action"], ACTIONS),
        framework=codes(events["framework"], FRAMEWORKS),
        **numbers,
    )


def state_at(recording: "Recording", at: "Moment" = None, device: int | None = None) -> MemoryState:
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
        return recording.final_state
    return _state_until(recording, as_ns(at, "at", 'a time in ns, "peak" or "end"'))


def initial_state(recording: "Recording") -> MemoryState:
    """Return the state before the recording, with statistics at their start."""
    state = MemoryState()
    state.apply(recording.memory_columns, 0, recording.manifest.initial_events)
    state.forget_the_past()
    return state


def allocated_bytes(state: MemoryState, device: int | None) -> int:
    """Return the bytes allocated on a device, or on all devices if None."""
    devices = state.devices() if device is None else [device]
    return sum(state.statistics(each)["allocated_bytes.all.current"] for each in devices)


def _state_until(recording: "Recording", time: int) -> MemoryState:
    state = initial_state(recording)
    state.apply(recording.memory_columns, recording.manifest.initial_events, until=time)
    return state


def _state_at_peak(recording: "Recording", device: int | None) -> MemoryState:
    import numpy as np

    from gpuviz.analysis.peak import peak_and_state

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
