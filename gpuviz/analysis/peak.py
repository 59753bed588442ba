"""Time and size of the memory peak."""

from dataclasses import dataclass

import numpy as np

from gpuviz._core import MemoryState
from gpuviz.analysis.initial_state import initial_state
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.processes import part_of_device
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


@dataclass(frozen=True, slots=True)
class Peak:
    """The maximum of allocated bytes.

    Attributes:
        time_ns: The first time of the maximum, in ns since the recording's start.
        bytes: Bytes allocated at that time.
        reserved_bytes: Bytes of known segments at that time.
        device: Ordinal; None for all devices together.
    """

    time_ns: int
    bytes: int
    reserved_bytes: int
    device: int | None


def peak(recording: RecordingData, device: int | None = None) -> Peak:
    """Return the peak of allocated bytes on a device, or on all devices together.

    Raises:
        ValueError: The recording has no such device.
    """
    if device is None:
        return peak_and_state(recording)[0]
    device, known = recording.device_or_first(device), _peaks(recording)
    if device not in known:
        own = part_of_device(recording, device)
        known[device] = peak_and_state(own, device)[0] if own is recording else peak(own, device)
    return known[device]


@Once
def _peaks(_: RecordingData) -> dict[int, Peak]:
    """Return the known peaks of a recording's devices."""
    return {}


def peak_and_state(
    recording: RecordingData, device: int | None = None
) -> tuple[Peak, MemoryState | None]:
    """Return the peak, and the state of memory then.

    The state is None if the times of the events are not ascending.

    Raises:
        ValueError: The recording has no such device.
    """
    if device is not None:
        device = recording.device_or_first(device)
    first = recording.manifest.initial_events
    state = initial_state(recording)
    found = state.apply_up_to_peak(recording.memory_columns, first, device)
    if found is None:
        return _peak_of_levels(recording, device), None
    rows, allocated, reserved = found
    time = recording.tables["memory_events"]["time"][rows - 1].as_py() if rows > first else 0
    return Peak(time, allocated, reserved, device), state


def _peak_of_levels(recording: RecordingData, device: int | None) -> Peak:
    """Return the peak if the events of several devices are interleaved out of order."""
    table = memory_levels(recording)
    there = initial_state(recording).devices()
    if device is not None:
        of_device = table["device"].to_numpy() == device
        table = table if of_device.all() else table.filter(of_device)
        there = [each for each in there if each == device]
    # The first rows are the initial state of each device, all of the same time; the events after
    # them are in order within each device only.
    first = len(there)
    times = table["time"].to_numpy()
    rows = table.select(["time", "device", "allocated", "reserved"])
    if (np.diff(times[first:]) < 0).any():
        later = first + np.argsort(times[first:], kind="stable")
        rows = rows.take(np.concatenate([np.arange(first), later]))
    devices = rows["device"].to_numpy()
    allocated = _moments(rows["allocated"].to_numpy(), devices, first)
    reserved = _moments(rows["reserved"].to_numpy(), devices, first)
    row = int(np.argmax(allocated))
    time = rows["time"][first + row - 1].as_py() if row else 0
    return Peak(time, int(allocated[row]), int(reserved[row]), device)


def _moments(values: np.ndarray, devices: np.ndarray, first: int) -> np.ndarray:
    """Return the sums over devices: before the events, then after each event."""
    sums = np.concatenate([np.zeros(1, values.dtype), _sum_over_devices(values, devices)])
    return sums[first:]


def _sum_over_devices(values: np.ndarray, devices: np.ndarray) -> np.ndarray:
    changes = np.zeros_like(values)
    present = np.unique(devices)
    if len(present) == 1:
        return values
    for each in present:
        rows = devices == each
        changes[rows] = np.diff(values[rows], prepend=0)
    return np.cumsum(changes)
