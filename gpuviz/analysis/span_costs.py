"""Memory, work and waits of a device in spans of a recording, in order and not overlapping."""

import numpy as np

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import within
from gpuviz.analysis.levels import memory_levels
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]


def peak_bytes(
    recording: RecordingData, device: int, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the most bytes allocated in each span."""
    levels = memory_levels(recording)
    rows = np.flatnonzero(plain(levels["device"]) == device)
    times, bytes_at = plain(levels["time"])[rows], plain(levels["allocated"])[rows]
    if not rows.size:
        return np.zeros(len(start), np.int64)
    first = np.maximum(np.searchsorted(times, start, side="right") - 1, 0)
    after = np.maximum(np.searchsorted(times, end, side="right"), first + 1)
    bounds = np.stack([first, after], axis=1).reshape(-1)
    peaks: np.ndarray = np.maximum.reduceat(np.append(bytes_at, 0), bounds)[::2]
    return peaks


def busy_ns(
    recording: RecordingData, device: int, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the time of each span in which any activity ran on a device."""
    activities = recording.tables["activities"]
    is_work = codes(activities["kind"], _KINDS) != _KINDS.index("range")
    began, ended = within(activities, (int(start[0]), int(end[-1])))
    chosen = np.flatnonzero(is_work & (plain(activities["device"]) == device) & (began < ended))
    chosen = chosen[np.argsort(began[chosen], kind="stable")]
    began, ended = began[chosen], np.maximum.accumulate(ended[chosen])
    # Of each activity, the part after all earlier ones.
    began[1:] = np.minimum(np.maximum(began[1:], ended[:-1]), ended[1:])
    return _time_in(start, end, began, ended)


def wait_ns(
    recording: RecordingData, device: int, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return how long the host was blocked in each span, by a device or an unknown one."""
    waits = derived(recording)["host_waits"]
    began, ended = within(waits, (int(start[0]), int(end[-1])))
    chosen = np.isin(plain(waits["device"]), [device, -1])
    return _time_in(start, end, began[chosen], ended[chosen])


def busy_before(recording: RecordingData, device: int, end_ns: int) -> int:
    """Return for how long any activity ran on a device before a time, in ns."""
    begins = plain(recording.tables["activities"]["time"])
    first = min(int(begins.min(initial=end_ns)), end_ns)
    if recording.bounds is not None:
        first = max(first, recording.bounds[0])
    if first >= end_ns:
        return 0
    return int(busy_ns(recording, device, np.array([first]), np.array([end_ns]))[0])


def _time_in(
    start: np.ndarray, end: np.ndarray, began: np.ndarray, ended: np.ndarray
) -> np.ndarray:
    """Return the sum of the parts in each span of what began and ended at some times."""
    times = np.stack([start, end]) - start[0]
    until = np.zeros(times.shape, np.int64)
    for edges, sign in ((began, 1), (ended, -1)):
        ordered = np.sort(edges - start[0], kind="stable")
        sums = np.concatenate([[0], np.cumsum(ordered)])
        count = np.searchsorted(ordered, times, side="right")
        until += sign * (count * times - sums[count])
    lasted: np.ndarray = until[1] - until[0]
    return lasted
