"""What the calls and the GPU work of a recording had to wait for."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.replay.awaited_work import AwaitedWork
from gpuviz.advice.replay.launch_order import LaunchOrder
from gpuviz.advice.replay.trace import Trace
from gpuviz.advice.replay.work_orders import WorkOrders

# Used where a recording has no example: from a launch call to a kernel on an idle GPU, and from the
# end of a kernel to the next one of the stream, on an H100.
_LAUNCH_NS = 6_000
NEXT_NS = 1_000
NEVER = -(2**62)

# Values of `Constraints.work` other than activities.
GAP, NESTED, OWN, LAUNCHED = -1, -2, -3, -4


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints between moments, in columns.

    Attributes:
        source: The earlier moment.
        target: The later moment, ascending.
        lag: How long after the source, in ns.
        work: The activity at the source, whose duration is in the lag; negative without one.
        call: The call that waits, or why an activity came after another, such as `BY_EVENT` of
            `gpuviz.advice.replay.work_orders`.
    """

    source: np.ndarray
    target: np.ndarray
    lag: np.ndarray
    work: np.ndarray
    call: np.ndarray


class Moments:
    """Numbers of the moments of a recording, in the order of their times.

    A call returns before the next one begins.

    Attributes:
        times: The recorded time of each moment, in ns.
        start: The moment at which each call begins.
        end: The moment at which each call returns.
        begun: The moment at which each activity begins.
    """

    def __init__(self, trace: Trace) -> None:
        calls, works = len(trace.called), len(trace.begin)
        times = np.concatenate([trace.returned, trace.called, trace.begin])
        order = np.lexsort((np.repeat([0, 1, 2], [calls, calls, works]), times))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        self.times = times[order]
        self.end, self.start, self.begun = np.split(places, [calls, 2 * calls])


class Orders:
    """The constraints between the moments of a recording, found in its tables.

    Args:
        trace: The recording's calls and activities.
        moments: Their moments.
    """

    def __init__(self, trace: Trace, moments: Moments) -> None:
        self._trace, self._moments = trace, moments
        self._order = LaunchOrder(trace)

    def constraints(self) -> Constraints:
        """Return all constraints."""
        return _sorted([*self._of_threads(), *self._of_calls(), *self._of_activities()])

    def _of_threads(self) -> Iterator[Constraints]:
        """Yield the time between the calls of a thread, or of threads that take turns."""
        trace, moments = self._trace, self._moments
        threads = trace.thread
        order = np.lexsort((trace.called, threads))
        before, after = order[:-1], order[1:]
        same = threads[before] == threads[after]
        before, after = before[same], after[same]
        apart = trace.returned[before] <= trace.called[after]
        source = np.where(apart, moments.end[before], moments.start[before])
        lag = trace.called[after] - np.where(apart, trace.returned[before], trace.called[before])
        yield _of(source, moments.start[after], lag, np.where(apart, GAP, NESTED), after)

    def _of_calls(self) -> Iterator[Constraints]:
        """Yield the own duration of calls, and the activities that they wait for."""
        trace, moments = self._trace, self._moments
        work, call = AwaitedWork(trace, self._order).pairs()
        known = (trace.begin[work] < trace.returned[call]) & (call >= 0)
        work, call = work[known], call[known]
        done = np.minimum(trace.end[work], trace.returned[call])
        since = trace.called.copy()
        np.maximum.at(since, call, done)
        calls = np.arange(len(trace.called))
        yield _of(moments.start, moments.end, trace.returned - since, OWN, calls)
        # Of several activities, the call waited for the last.
        late = (done > trace.called[call]) & (done == since[call])
        lag = trace.returned[call] - trace.begin[work]
        usual = trace.duration[work] + np.minimum(trace.returned[call] - done, NEXT_NS)
        lag = np.where(late, lag, np.minimum(lag, usual))
        yield _of(moments.begun[work], moments.end[call], lag, work, call)

    def _of_activities(self) -> Iterator[Constraints]:
        """Yield launches, and the activities that have to end before another begins."""
        trace, moments = self._trace, self._moments
        before, after, order = WorkOrders(trace, self._order).pairs()
        # The driver stamps some copies of pageable memory before the kernel that they wait for.
        known = moments.begun[before] < moments.begun[after]
        if not known.all():
            before, after, order = before[known], after[known], order[known]
        launched = np.flatnonzero((trace.call >= 0) & (trace.launch_begin() <= trace.begin))
        calls, launch_begin = trace.call[launched], trace.launch_begin()[launched]
        free = np.full(len(trace.begin), NEVER)
        np.maximum.at(free, after, trace.end[before])
        # What an activity began last after keeps its distance: the launch, or earlier work.
        lag = trace.begin[launched] - launch_begin
        launch_ns = _median(lag[free[launched] <= launch_begin], _LAUNCH_NS)
        ready = np.full(len(trace.begin), NEVER)
        ready[launched] = launch_begin + launch_ns
        apart = trace.begin[after] - trace.end[before]
        # A dependent launch may begin before the end of the work before it.
        queued = (trace.end[before] == free[after]) & (trace.end[before] >= ready[after])
        queued &= apart >= 0
        next_ns = _median(apart[queued], NEXT_NS)
        is_last = ready[launched] >= free[launched] + next_ns
        lag = np.where(is_last, lag, np.minimum(lag, launch_ns))
        yield _of(moments.start[calls], moments.begun[launched], lag, LAUNCHED, calls)
        is_last = (trace.end[before] == free[after]) & (free[after] + next_ns >= ready[after])
        lag = np.where(is_last, apart, np.minimum(apart, next_ns)) + trace.duration[before]
        yield _of(moments.begun[before], moments.begun[after], lag, before, order)


def _median(values: np.ndarray, otherwise: int) -> int:
    return int(np.median(values)) if len(values) else otherwise


def _of(
    source: np.ndarray,
    target: np.ndarray,
    lag: np.ndarray,
    work: np.ndarray | int,
    call: np.ndarray,
) -> Constraints:
    """Return the constraints whose source precedes their target."""
    work = np.broadcast_to(np.asarray(work, np.int32), source.shape)
    rows = [each.astype(np.int32, copy=False) for each in (source, target, work, call)]
    kept = source < target
    if not kept.all():
        rows, lag = [each[kept] for each in rows], lag[kept]
    source, target, work, call = rows
    return Constraints(source, target, lag, work, call)


def _sorted(parts: list[Constraints]) -> Constraints:
    target = np.concatenate([part.target for part in parts])
    order = np.argsort(target, kind="stable")
    source, lag, work, call = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("source", "lag", "work", "call")
    )
    return Constraints(source.view(np.uint32), target[order].view(np.uint32), lag, work, call)
