"""Times of several hosts on one axis, with a bound of the error.

Processes of one boot share ``CLOCK_MONOTONIC``. Other hosts are compared by their wall clocks: the
snapshots of a recording relate its host's monotonic clock to its wall clock. Collectives narrow the
error (`gpuviz.merging.refinement`).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

UNKNOWN = -1
# NTP changes the speed of a clock by at most 500 parts in a million (`adjtimex(2)`); two clocks
# therefore drift apart by at most twice that. A larger change is a step.
MOST_DRIFT = 1e-3
# Durations stay exact where a constant difference is about as good as one that changes.
AS_GOOD_NS = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The wall clock at a time of the monotonic clock, in ns, and how far apart they were read."""

    monotonic: int
    wall: int
    uncertainty: int


@dataclass(frozen=True, slots=True)
class Step:
    """A jump of the wall clock, found at a time of the monotonic clock, in ns."""

    monotonic: int
    size: int


class HostClock:
    """The monotonic clock of a host in terms of its wall clock.

    Args:
        snapshots: At least one, of any processes since the host's start.

    Attributes:
        steps: Jumps of the wall clock. They are taken out, so that the time axis has no jump; it
            is unknown on which side of one the wall clock was right.
        error: Bound of the error between the first and the last snapshot, in ns.
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        ordered = sorted(snapshots, key=lambda each: each.monotonic)
        self._origin = ordered[0].monotonic
        self._base = ordered[0].wall - ordered[0].monotonic
        times = np.array([each.monotonic - self._origin for each in ordered], np.float64)
        uncertain = np.array([each.uncertainty for each in ordered], np.float64)
        self.steps = tuple(_steps(ordered))
        sums = [*accumulate((step.size for step in self.steps), initial=0)]
        begins = [step.monotonic for step in self.steps]
        ahead = np.array(
            [
                each.wall - each.monotonic - self._base - sums[bisect_right(begins, each.monotonic)]
                for each in ordered
            ],
            np.float64,
        )
        jumped = max(map(abs, sums))
        middle = (ahead.min() + ahead.max()) / 2
        constant = float((np.abs(ahead - middle) + uncertain).max())
        changing = float(uncertain.max())
        if constant <= 2 * changing + AS_GOOD_NS:
            times, ahead, error = times[[0, -1]], np.full(2, middle), constant
        else:
            error = changing
        self.error = error + jumped
        self._times, self._ahead = times, ahead
        span = float(times[-1])
        self._rate = float(ahead[-1] - ahead[0]) / span if span else 0.0
        self._rate_error = min(2 * error / span, MOST_DRIFT) if span else MOST_DRIFT

    def wall(self, monotonic: int) -> int:
        """Return the wall clock at a time of the monotonic clock, in ns."""
        return monotonic + self._base + round(self._ahead_at(monotonic - self._origin))

    def monotonic(self, wall: int) -> int:
        """Return the monotonic clock at a time of the wall clock, in ns."""
        found = wall - self._base
        # The difference changes by at most a thousandth of the time, so this converges.
        for _ in range(8):
            found = wall - self._base - round(self._ahead_at(found - self._origin))
        return found

    def error_at(self, monotonic: int) -> float:
        """Return the bound of the error of `wall`; larger before and after the snapshots."""
        time = monotonic - self._origin
        outside = max(-time, time - float(self._times[-1]), 0.0)
        return self.error + outside * self._rate_error

    @property
    def knots(self) -> list[int]:
        """The times of the monotonic clock between which the difference changes evenly."""
        return [self._origin + round(time) for time in self._times.tolist()]

    def _ahead_at(self, time: float) -> float:
        last = float(self._times[-1])
        inside = float(np.interp(time, self._times, self._ahead))
        return inside + self._rate * (min(time, 0.0) + max(time - last, 0.0))


def _steps(ordered: Sequence[Snapshot]) -> list[Step]:
    found = []
    for before, after in pairwise(ordered):
        passed = after.monotonic - before.monotonic
        change = (after.wall - before.wall) - passed
        if abs(change) > before.uncertainty + after.uncertainty + MOST_DRIFT * passed:
            found.append(Step(after.monotonic, change))
    return found


@dataclass(frozen=True, slots=True)
class Alignment:
    """The monotonic clock of a host on a common axis.

    Attributes:
        shift: What to add to a time, in ns.
        error: Bound of the error, in ns, as far as the wall clocks of the host and of the reference
            agree; 0 on the reference host, -1 if unknown.
        origin: The time that ``times`` count from.
        times: Times between which ``further`` changes evenly.
        further: What to add besides ``shift``; nothing if both clocks run alike.
        collectives: How many collectives narrowed the error.
        rejected: How many contradict the others, or the wall clocks, and were not used.
        refuted: By how much the wall clocks differ if collectives refute them, in ns; 0 if not.
    """

    shift: int
    error: int
    origin: int = 0
    times: tuple[int, ...] = ()
    further: tuple[int, ...] = ()
    collectives: int = 0
    rejected: int = 0
    refuted: int = 0

    def aligned(self, monotonic: np.ndarray) -> np.ndarray:
        """Return times of the host's monotonic clock on the common axis, in ns."""
        moved: np.ndarray = monotonic + np.int64(self.shift)
        if not self.times:
            return moved
        passed = (monotonic - np.int64(self.origin)).astype(np.float64)
        moved += np.rint(np.interp(passed, self.times, self.further)).astype(np.int64)
        return moved


def align(first: int, last: int, own: HostClock, reference: HostClock) -> Alignment:
    """Return the alignment of a host's monotonic clock to that of another.

    Args:
        first: The first time to align, on the host's own clock, in ns.
        last: The last such time.
        own: The clock of the host.
        reference: The clock of the other one.
    """
    theirs = (own.monotonic(reference.wall(time)) for time in reference.knots)
    inner = (time for time in (*own.knots, *theirs) if first < time < last)
    times = sorted({first, last, *inner})
    reached = [reference.monotonic(own.wall(time)) for time in times]
    error = max(
        own.error_at(time) + reference.error_at(other)
        for time, other in ((times[0], reached[0]), (times[-1], reached[-1]))
    )
    shifts = [other - time for time, other in zip(times, reached, strict=True)]
    further = tuple(shift - shifts[0] for shift in shifts)
    # The conversions round to nanoseconds.
    bound = int(error) + 3
    if not any(further):
        return Alignment(shifts[0], bound)
    return Alignment(shifts[0], bound, first, tuple(time - first for time in times), further)
