"""The calls and the GPU work of a recording as a schedule that can be replayed with changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuviz import _core
from gpuviz.advice.replay.constraints import (
    GAP,
    NEVER,
    NEXT_NS,
    OWN,
    Constraints,
    Moments,
    Orders,
)
from gpuviz.advice.replay.trace import Trace
from gpuviz.advice.replay.warm_runs import Preparation
from gpuviz.advice.replay.work_orders import BY_STREAM
from gpuviz.data.recording_data import RecordingData


@dataclass(frozen=True, eq=False, slots=True)
class ScheduleChange:
    """What a changed program does in less time, or does not wait for.

    Attributes:
        duration: Other durations of the activities; None if they stay.
        without_wait: Mask of calls that wait for nothing.
        without_gap: Mask of calls that begin when the previous call of the thread returns.
        shorter_gap: By how much sooner each call begins after the previous one of the thread, in
            ns, though not before it returns.
        instant: Mask of calls that take no time of their own.
        without_order: Mask of constraints that no longer hold.
        joined: Mask of activities that one kernel does with the next of the stream, which therefore
            begins at once.
        at_most_ns: What the change can save at most, for reasons that the schedule does not have.
        orders: Pairs of activities of which the second then has to wait for the first: what some
            of the constraints that no longer hold were needed for.
        is_of_preparation: Whether it is a part of the host's preparation that gets shorter, of
            which a warm run has none.
    """

    duration: np.ndarray | None = None
    without_wait: np.ndarray | None = None
    without_gap: np.ndarray | None = None
    shorter_gap: np.ndarray | None = None
    instant: np.ndarray | None = None
    without_order: np.ndarray | None = None
    joined: np.ndarray | None = None
    at_most_ns: int | None = None
    orders: tuple[np.ndarray, np.ndarray] | None = None
    is_of_preparation: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class _Base:
    """What changes are replayed from.

    Attributes:
        lags: The lags of the constraints, in ns.
        duration: The durations of the activities, in ns.
        not_before: Before when each moment cannot be, whatever it had to wait for.
        last_ns: When the last activity or call ends without a change.
    """

    lags: np.ndarray
    duration: np.ndarray
    not_before: np.ndarray
    last_ns: int


class Schedule(Trace):
    """When each call began and returned and each activity began, and what each had to wait for.

    A call begins at the recorded distance from the previous call of its thread. It returns after
    its own duration, and if it waits, not before the activities that it waits for. An activity
    begins after its launch, after the previous activity of its stream and of its engine (kernels,
    copies in each direction), and after the events and default streams that its stream waits for.
    Whichever of these was last keeps its recorded distance; the others may come as close as is
    typical for the recording. Without a change the replay is the recording, to the ns.

    Savings are those of a warm run, as are the times that they are compared with: another run has
    no time in which the host compiles or loads code, behind which work of the GPU can hide; see
    `gpuviz.advice.replay.warm_runs.Preparation`.

    What the recording does not explain stays at its recorded time, so that a prediction is rather
    too small: activities without a call, the first call of a thread.

    Attributes:
        moments: The moments of the recording.
        constraints: The constraints between them.
        not_before: Before when each moment cannot be, whatever it had to wait for.
    """

    def __init__(self, recording: RecordingData) -> None:
        super().__init__(recording)
        self.moments = Moments(self)
        self.constraints = Orders(self, self.moments).constraints()
        self._pin_unexplained()

    def saved_ns(self, *changes: ScheduleChange, cold: bool = False) -> int:
        """Return by how much the last activity or call would end earlier after changes, in ns.

        Args:
            changes: The changes.
            cold: Whether the host prepares as recorded; otherwise nothing is saved by waiting for
                the GPU before it compiles or loads code, and all of what hides behind that is.
        """
        base = self._recorded if cold else self._warm
        duration = self._shorter(base, changes)
        times = self._times_after(base, changes)
        return max(0, base.last_ns - self._last(times, duration))

    def times(self, lags: np.ndarray) -> np.ndarray:
        """Return when each moment is if the constraints have other lags, in ns."""
        return self._times(self.constraints.source, self.constraints.target, lags, self.not_before)

    def times_behind_host(self, lags: np.ndarray) -> np.ndarray:
        """Return the same if what no constraint explains follows the host."""
        constraints, moments = self.constraints, self.moments
        host = np.sort(np.concatenate([moments.start, moments.end]))
        free = np.flatnonzero(self.not_before != NEVER)
        before = np.searchsorted(host, free) - 1
        free, before = free[before >= 0], host[before[before >= 0]]
        not_before = self.not_before.copy()
        not_before[free] = NEVER
        source = np.concatenate([constraints.source, before.astype(np.uint32)])
        target = np.concatenate([constraints.target, free.astype(np.uint32)])
        lags = np.concatenate([lags, moments.times[free] - moments.times[before]])
        order = np.argsort(target, kind="stable")
        return self._times(source[order], target[order], lags[order], not_before)

    def times_after(self, *changes: ScheduleChange) -> np.ndarray:
        """Return when each moment is after changes, in ns."""
        return self._times_after(self._recorded, changes)

    def _times_after(self, base: _Base, changes: Sequence[ScheduleChange]) -> np.ndarray:
        """Return the same, from the recording or from a warm run."""
        duration = self._shorter(base, changes)
        lags = self._lags(base, duration, changes)
        pairs = [change.orders for change in changes if change.orders is not None]
        if not pairs:
            return self._times(
                self.constraints.source, self.constraints.target, lags, base.not_before
            )
        before, after = (np.concatenate(each) for each in zip(*pairs, strict=True))
        later = self.moments.begun[before] < self.moments.begun[after]
        before, after = before[later], after[later]
        apart = np.minimum(self.begin[after] - self.end[before], NEXT_NS)
        source, target = (
            np.concatenate([known, self.moments.begun[added].astype(np.uint32)])
            for known, added in (
                (self.constraints.source, before),
                (self.constraints.target, after),
            )
        )
        lags = np.concatenate([lags, np.maximum(apart + duration[before], 0)])
        order = np.argsort(target, kind="stable")
        return self._times(source[order], target[order], lags[order], base.not_before)

    def saved_in_sequence(self, changes: Sequence[ScheduleChange]) -> list[int]:
        """Return what each change saves after those before it, in ns.

        A change of the preparation saves what it does in the recording, any other what it does in
        a warm run.
        """
        saved, before, warm = [], 0, list[ScheduleChange]()
        for count, change in enumerate(changes):
            if change.is_of_preparation:
                earlier = changes[:count]
                further = self.saved_ns(*earlier, change, cold=True)
                further = max(further - self.saved_ns(*earlier, cold=True), 0)
            else:
                warm.append(change)
                after = self.saved_ns(*warm)
                further = max(after - before, 0)
                before = max(after, before)
            saved.append(further if change.at_most_ns is None else min(further, change.at_most_ns))
        return saved

    def saved_alone(self, change: ScheduleChange) -> int:
        """Return what one change saves, in ns."""
        return self.saved_in_sequence([change])[0]

    def orders(self, *reasons: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the constraints between activities for some reasons, such as `BY_EVENT`.

        Returns:
            The numbers of the constraints, the earlier activities and the later ones.
        """
        constraints = self.constraints
        chosen = (constraints.work >= 0) & np.isin(constraints.call, reasons)
        rows = np.flatnonzero(chosen)
        begins = np.full(len(self.moments.times), -1)
        begins[self.moments.begun] = np.arange(len(self.moments.begun))
        return rows, constraints.work[rows], begins[constraints.target[rows]]

    def without(self, rows: np.ndarray) -> ScheduleChange:
        """Return the change by which some constraints no longer hold."""
        removed = np.zeros(len(self.constraints.lag), bool)
        removed[rows] = True
        return ScheduleChange(without_order=removed)

    def without_work(self, work: np.ndarray) -> ScheduleChange:
        """Return the change by which some activities, and the calls that launch them, take no time.

        Args:
            work: Indices of activities.
        """
        duration, instant = self.duration.copy(), np.zeros(len(self.called), bool)
        duration[work] = 0
        calls = self.call[work]
        instant[calls[calls >= 0]] = True
        return ScheduleChange(duration=duration, instant=instant)

    def _times(
        self,
        source: np.ndarray,
        target: np.ndarray,
        lags: np.ndarray,
        not_before: np.ndarray,
    ) -> np.ndarray:
        times: np.ndarray = np.asarray(_core.earliest_times(not_before, source, target, lags))
        return times

    def _shorter(self, base: _Base, changes: Sequence[ScheduleChange]) -> np.ndarray:
        """Return the durations of the activities after some changes."""
        duration, joined = base.duration, np.zeros(len(self.duration), bool)
        for change in changes:
            if change.duration is not None:
                # One kernel takes no less time without one of its operations.
                shorter = np.where(joined, duration, change.duration)
                duration = np.minimum(duration, shorter)
            if change.joined is not None:
                joined |= change.joined
        return duration

    def _lags(
        self, base: _Base, duration: np.ndarray, changes: Sequence[ScheduleChange]
    ) -> np.ndarray:
        """Return the lags of the constraints after some changes."""
        constraints: Constraints = self.constraints
        lags, of_calls = base.lags.copy(), constraints.call
        gaps, own = self._gaps, self._own
        for change in changes:
            if change.without_gap is not None:
                without = gaps[change.without_gap[of_calls[gaps]]]
                lags[without] = np.minimum(lags[without], 0)
            if change.shorter_gap is not None:
                sooner = lags[gaps] - change.shorter_gap[of_calls[gaps]]
                lags[gaps] = np.minimum(lags[gaps], np.maximum(sooner, 0))
            if change.instant is not None:
                lags[own[change.instant[of_calls[own]]]] = 0
        if duration is not self.duration:
            less = duration - self.duration
            rows = self._of_work[(less != 0)[self._works]]
            lags[rows] = np.maximum(lags[rows] + less[constraints.work[rows]], 0)
        for change in changes:
            if change.without_wait is not None:
                waits = self._waits
                lags[waits[change.without_wait[of_calls[waits]]]] = NEVER
            if change.joined is not None:
                rows = self._on_stream
                rows = rows[change.joined[constraints.work[rows]]]
                lags[rows] = np.minimum(lags[rows], duration[constraints.work[rows]])
            if change.without_order is not None:
                lags[change.without_order] = NEVER
        return lags

    @cached_property
    def _gaps(self) -> np.ndarray:
        """The constraints that are the time between the calls of a thread."""
        return np.flatnonzero(self.constraints.work == GAP)

    @cached_property
    def _own(self) -> np.ndarray:
        """The constraints that are the own duration of calls."""
        return np.flatnonzero(self.constraints.work == OWN)

    @cached_property
    def _of_work(self) -> np.ndarray:
        """The constraints with the duration of an activity in them."""
        return np.flatnonzero(self.constraints.work >= 0)

    @cached_property
    def _works(self) -> np.ndarray:
        """The activities of these."""
        works: np.ndarray = self.constraints.work[self._of_work]
        return works

    @cached_property
    def _waits(self) -> np.ndarray:
        """The constraints that are activities which a call waits for."""
        rows: np.ndarray = self._of_work[self.constraints.call[self._of_work] >= 0]
        return rows

    @cached_property
    def _on_stream(self) -> np.ndarray:
        """The constraints that are activities before others of their stream."""
        rows: np.ndarray = self._of_work[self.constraints.call[self._of_work] == BY_STREAM]
        return rows

    @cached_property
    def _recorded(self) -> _Base:
        """The recording itself."""
        last_ns = self._last(self.moments.times, self.duration)
        return _Base(self.constraints.lag, self.duration, self.not_before, last_ns)

    @cached_property
    def _warm(self) -> _Base:
        """A warm run."""
        preparation = Preparation(self)
        if not preparation.spans:
            return self._recorded
        lags = preparation.without(self.constraints, self.moments.times)
        duration = np.where(preparation.is_for_it(), 0, self.duration)
        base = _Base(lags, duration, self.not_before, 0)
        times = self.times_behind_host(self._lags(base, duration, ()))
        not_before = np.where(self.not_before == NEVER, NEVER, times)
        return _Base(lags, duration, not_before, self._last(times, duration))

    def _last(self, times: Any, duration: np.ndarray) -> int:
        ends = times[self.moments.begun] + duration
        returned = times[self.moments.end]
        return max(int(ends.max(initial=0)), int(returned.max(initial=0)))

    def _pin_unexplained(self) -> None:
        """Keep the recorded time of moments that no constraint explains."""
        constraints, recorded = self.constraints, self.moments.times
        self.not_before = np.full(len(recorded), NEVER)
        explained = np.zeros(len(recorded), bool)
        explained[constraints.target] = True
        explained[self.moments.begun[self.call < 0]] = False
        self.not_before[~explained] = recorded[~explained]
        times = self.times(constraints.lag)
        early = times < recorded
        self.not_before[early] = recorded[early]
