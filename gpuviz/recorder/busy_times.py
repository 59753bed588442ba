"""Incremental unions of intervals, for the busy time of devices."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Times = NDArray[np.int64]

# Parts of a union that can still change (4 MiB); beyond that, the older half is settled.
MOST_PARTS = 1 << 18


class GrowingUnion:
    """The length of a union of intervals that arrive roughly in order of time.

    The length is exact unless an interval begins before `settled_ns`; the part of an interval
    before that time is not counted. At least the last `MOST_PARTS` / 2 separate parts of the union
    begin after `settled_ns`. The cost of `add` is proportional to the number of added intervals,
    plus the number of parts of the union that end after the first of them begins.

    Attributes:
        length_ns: The length of the union.
        settled_ns: The union before this time is final.
        uncounted_ns: The total length of the parts of intervals that arrived too late.
    """

    def __init__(self, most_parts: int = MOST_PARTS) -> None:
        self._most_parts = most_parts
        self._starts: Times = np.empty(0, np.int64)
        self._ends: Times = np.empty(0, np.int64)
        self._count = 0
        self.length_ns = 0
        self.settled_ns = np.iinfo(np.int64).min
        self.uncounted_ns = 0

    def add(self, starts: "Times", ends: "Times") -> None:
        """Add the intervals from ``starts`` to ``ends``; none ends before it begins."""
        if not starts.size:
            return
        first_ns = int(starts.min())
        if first_ns < self.settled_ns:
            late = np.minimum(ends, self.settled_ns) - np.minimum(starts, self.settled_ns)
            self.uncounted_ns += int(late.sum())
            starts, ends = np.maximum(starts, self.settled_ns), np.maximum(ends, self.settled_ns)
            first_ns = self.settled_ns
        kept = int(np.searchsorted(self._ends[: self._count], first_ns))
        grown = slice(kept, self._count)
        self.length_ns -= int((self._ends[grown] - self._starts[grown]).sum())
        merged = _merged(
            np.concatenate([self._starts[grown], starts]), np.concatenate([self._ends[grown], ends])
        )
        self.length_ns += int((merged[1] - merged[0]).sum())
        self._put(kept, *merged)

    def _put(self, kept: int, starts: "Times", ends: "Times") -> None:
        count = kept + starts.size
        if count > self._starts.size:
            self._starts = _grown(self._starts, 2 * count)
            self._ends = _grown(self._ends, 2 * count)
        self._starts[kept:count], self._ends[kept:count] = starts, ends
        self._count = count
        if count > self._most_parts:
            self._settle(count // 2)

    def _settle(self, parts: int) -> None:
        left = self._count - parts
        self.settled_ns = int(self._ends[parts - 1])
        self._starts = self._starts[parts : self._count].copy()
        self._ends = self._ends[parts : self._count].copy()
        self._count = left


def _merged(starts: "Times", ends: "Times") -> "tuple[Times, Times]":
    """Return the parts of the union of intervals in order, ignoring empty intervals."""
    has_length = ends > starts
    starts, ends = starts[has_length], ends[has_length]
    if not starts.size:
        return starts, ends
    order: Any = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    begins = np.flatnonzero(starts[1:] > ends[:-1]) + 1
    return starts[np.concatenate([[0], begins])], ends[np.concatenate([begins - 1, [-1]])]


def _grown(values: "Times", capacity: int) -> "Times":
    larger = np.empty(capacity, np.int64)
    larger[: values.size] = values
    return larger


class BusyTimes:
    """Busy times of a device, by kind of activity.

    Attributes:
        activities: Number of activities.
        start_ns: Start of the first activity.
        end_ns: End of the last activity.
    """

    def __init__(self) -> None:
        self._any = GrowingUnion()
        self._kernels = GrowingUnion()
        self._copies = GrowingUnion()
        self._kernels_and_copies = GrowingUnion()
        self.activities = 0
        self.start_ns = 0
        self.end_ns = 0

    def add(
        self, starts: "Times", ends: "Times", kernels: "NDArray[Any]", copies: "NDArray[Any]"
    ) -> None:
        """Add one or more activities; ``kernels`` and ``copies`` are masks of their kinds."""
        ends = np.maximum(starts, ends)
        first_ns, last_ns = int(starts.min()), int(ends.max())
        self.start_ns = min(self.start_ns, first_ns) if self.activities else first_ns
        self.end_ns = max(self.end_ns, last_ns) if self.activities else last_ns
        self.activities += starts.size
        self._any.add(starts, ends)
        self._kernels.add(starts[kernels], ends[kernels])
        if copies.any():
            self._copies.add(starts[copies], ends[copies])
        either = kernels | copies
        self._kernels_and_copies.add(starts[either], ends[either])

    @property
    def busy_ns(self) -> int:
        """Time in which any activity ran."""
        return self._any.length_ns

    @property
    def kernel_ns(self) -> int:
        """Time in which a kernel ran."""
        return self._kernels.length_ns

    @property
    def copy_ns(self) -> int:
        """Time in which a copy ran."""
        return self._copies.length_ns

    @property
    def kernel_copy_ns(self) -> int:
        """Time in which a kernel and a copy ran."""
        return self.kernel_ns + self.copy_ns - self._kernels_and_copies.length_ns

    @property
    def uncounted_ns(self) -> int:
        """Upper bound of the error of these times."""
        apart = self._kernels.uncounted_ns + self._copies.uncounted_ns
        return max(self._any.uncounted_ns, apart, self._kernels_and_copies.uncounted_ns)
