"""Numbers of a test's recording: its own peak, reserved memory, allocations, synchronizations."""

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.analysis.lifetimes import lifetimes
from gpuviz.data.columns import plain
from gpuviz.testing.comparison import FIELDS

if TYPE_CHECKING:
    from gpuviz.recording import Recording


@dataclass(frozen=True, slots=True)
class OwnPeak:
    """The peak of the memory that a test allocates.

    Attributes:
        bytes: Bytes at the peak, without blocks that existed before the test.
        time_ns: The time of the peak since the start of the recording, in ns.
        by_stack: The bytes of each call stack at that time, most first.
        allocations: The number of allocations of the whole test.
    """

    bytes: int
    time_ns: int
    by_stack: dict[int, int]
    allocations: int


def own_peak(recording: "Recording", device: int | None = None) -> OwnPeak:
    """Return the peak of what was allocated during a recording.

    Args:
        recording: The recording.
        device: Ordinal; the sum of all devices if None.
    """
    import numpy as np

    blocks = lifetimes(recording)
    own = blocks.alloc >= recording.manifest.initial_events
    if device is not None:
        own &= blocks.device == device
    size, stack = blocks.size[own].astype(np.int64), blocks.stack[own]
    times = plain(recording.tables["memory_events"]["time"])
    # Events of several devices may be interleaved out of order.
    order = np.argsort(times, kind="stable")
    rank = np.empty(len(times) + 1, np.int64)
    rank[order] = np.arange(len(times))
    rank[-1] = len(times)
    begin, end = rank[blocks.alloc[own]], rank[blocks.free[own]]
    change = np.zeros(len(times) + 1, np.int64)
    np.add.at(change, begin, size)
    np.subtract.at(change, end, size)
    level = np.cumsum(change[:-1])
    if not len(size):
        return OwnPeak(0, 0, {}, 0)
    top = int(np.argmax(level))
    live = (begin <= top) & (end > top)
    by_stack = defaultdict[int, int](int)
    for number, nbytes in zip(stack[live].tolist(), size[live].tolist(), strict=True):
        by_stack[number] += nbytes
    most_first = dict(sorted(by_stack.items(), key=lambda each: -each[1]))
    return OwnPeak(int(level[top]), int(times[order[top]]), most_first, len(size))


def reserved_peak(recording: "Recording", device: int | None = None) -> int:
    """Return the peak of reserved bytes, also of memory that was reserved before the recording.

    Args:
        recording: The recording.
        device: Ordinal; the sum of all devices if None.
    """
    import numpy as np

    levels = recording.memory_levels
    devices, times = plain(levels["device"]), plain(levels["time"])
    reserved = plain(levels["reserved"]).astype(np.int64)
    chosen = np.ones(len(devices), bool) if device is None else devices == device
    changes = reserved.copy()
    for each in np.unique(devices):
        rows = devices == each
        changes[rows] = np.diff(reserved[rows], prepend=0)
    order = np.argsort(times[chosen], kind="stable")
    return int(np.cumsum(changes[chosen][order]).max(initial=0))


def synchronizations(recording: "Recording", end_ns: int) -> int:
    """Return how often the host waited for the GPU until ``end_ns``."""
    return int((plain(recording.derived["host_waits"]["time"]) <= end_ns).sum())


def measured(recording: "Recording", end_ns: int, *, has_streams: bool) -> dict[str, int]:
    """Return the values of a test's properties that are known, by name."""
    peak = own_peak(recording)
    values = {
        FIELDS["peak"]: peak.bytes,
        FIELDS["reserved"]: reserved_peak(recording),
        FIELDS["allocs"]: peak.allocations,
    }
    return values | ({FIELDS["syncs"]: synchronizations(recording, end_ns)} if has_streams else {})
