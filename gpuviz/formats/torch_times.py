"""Times of a torch memory snapshot on the time axis of a recording."""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The last microsecond whose nanoseconds since 1970 fit into 64 bits, in the year 2262.
LATEST_US = (2**63 - 1) // 1000
NS = 1000


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the events, in ns since the recording's start.

    Attributes:
        events: The time of each event; never decreasing within a device.
        start_unix_ns: Time 0 in ns since 1970; 0 if unknown.
        end: The latest time.
        are_missing: Whether the file has no times, so that events are placed 1 µs apart.
        moved: Number of events that the file dates before their predecessors.
    """

    events: "NDArray[Any]"
    start_unix_ns: int
    end: int
    are_missing: bool
    moved: int

    def of(self, time_us: "NDArray[Any]") -> "NDArray[Any]":
        """Convert times in µs since 1970 to ns since the recording's start."""
        if self.are_missing:
            return np.zeros(len(time_us), np.int64)
        times: NDArray[Any] = np.maximum(time_us * NS - self.start_unix_ns, 0)
        return times


def event_times(
    time_us: "NDArray[Any]",
    devices: "NDArray[Any]",
    others_us: "NDArray[Any]",
    start_unix_ns: Any,
) -> Times:
    """Return the times of events.

    Args:
        time_us: The time of each event, in µs since 1970; 0 where missing.
        devices: The device of each event; events are grouped by device.
        others_us: Other times in the file, in µs since 1970.
        start_unix_ns: The start of the exported recording; None if unknown.

    Raises:
        ValueError: A time is after the year 2262.
    """
    latest = max(time_us.max(initial=0), others_us.max(initial=0))
    if latest > LATEST_US:
        raise ValueError(f"a time is {latest} µs after 1970, expected at most {LATEST_US}")
    bounds = [0, *(np.flatnonzero(np.diff(devices)) + 1).tolist(), len(devices)]
    parts = [slice(*bound) for bound in itertools.pairwise(bounds)]
    is_known = type(start_unix_ns) is int and 0 <= start_unix_ns <= LATEST_US * NS
    if not is_known and len(time_us) and not time_us.any():
        ordinal = np.zeros(len(time_us), np.int64)
        for part in parts:
            ordinal[part] = np.arange(part.stop - part.start) * NS
        return Times(ordinal, 0, int(ordinal.max()), are_missing=True, moved=0)
    known = np.concatenate([time_us[time_us > 0], others_us[others_us > 0]])
    earliest = int(known.min()) * NS if len(known) else 0
    start = start_unix_ns if is_known else earliest
    events = np.maximum(time_us * NS - start, 0)
    moved = 0
    for part in parts:
        ordered = np.maximum.accumulate(events[part])
        moved += int(np.count_nonzero(ordered != events[part]))
        events[part] = ordered
    end = max(events.max(initial=0), int(others_us.max(initial=0)) * NS - start)
    return Times(events, start, int(end), are_missing=False, moved=moved)
