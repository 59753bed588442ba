"""Memory of every device before a recording."""

from typing import TYPE_CHECKING

from gpuviz._core import MemoryState

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# States of a block in the native core.
INACTIVE = 0
ALLOCATED = 1
PENDING_FREE = 2


def initial_state(recording: "RecordingData") -> MemoryState:
    """Return the state before the recording, with statistics at their start."""
    state = MemoryState()
    state.apply(recording.memory_columns, 0, recording.manifest.initial_events)
    state.forget_the_past()
    return state


def allocated_bytes(state: MemoryState, device: int | None) -> int:
    """Return the bytes allocated on a device, or on all devices if None."""
    devices = state.devices() if device is None else [device]
    return sum(state.statistics(each)["allocated_bytes.all.current"] for each in devices)
