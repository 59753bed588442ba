"""How much of a GPU some launches of a kernel fill while they run, together with all others."""

from functools import cached_property

import numpy as np

from gpuviz.analysis.intervals import Intervals

# Where the number of multiprocessors is unknown, one launch fills nothing, and two fill the GPU.
_UNKNOWN = 1


class Occupancy:
    """The share of a GPU's multiprocessors that is idle while some launches run.

    Launches that run at the same time fill it together, a multiprocessor for each block. Any other
    kernel fills all of it.

    Args:
        begin: Begins of the launches in ns.
        end: Their ends in ns.
        blocks: Their numbers of thread blocks.
        multiprocessors: The GPU's number of multiprocessors; 0 if unknown.
        others: When other kernels run.

    Attributes:
        union_ns: For how long any of the launches runs.
        most_at_once: The most of them that run at the same time.
    """

    def __init__(
        self,
        begin: np.ndarray,
        end: np.ndarray,
        blocks: np.ndarray,
        multiprocessors: int,
        others: Intervals,
    ) -> None:
        self._begin, self._end = begin, end
        whole = multiprocessors or _UNKNOWN
        filled = blocks if multiprocessors else np.ones(len(blocks), np.int64)
        every = np.full(len(others.begin), whole)
        times = np.concatenate([begin, end, others.begin, others.end])
        order = np.argsort(times, kind="stable")
        self._times = times[order]
        ones, none = np.ones(len(begin), np.int64), np.zeros(2 * len(every), np.int64)
        running = np.cumsum(np.concatenate([ones, -ones, none])[order])
        level = np.cumsum(np.concatenate([filled, -filled, every, -every])[order])
        level -= 0 if multiprocessors else 1
        self._length = np.diff(self._times, append=self._times[-1:])
        self._is_running = (running > 0) & (self._length > 0)
        self._fill = np.clip(level / whole, 0, 1)
        self.union_ns = int(self._length[self._is_running].sum())
        self.most_at_once = int(running[self._is_running].max(initial=0))

    @cached_property
    def idle_ns(self) -> np.ndarray:
        """For each launch, how long it runs times the share that is idle meanwhile, in ns."""
        idle = np.concatenate([[0], np.cumsum(self._length * (1 - self._fill))])
        first, last = (np.searchsorted(self._times, each) for each in (self._begin, self._end))
        found: np.ndarray = (idle[last] - idle[first]).astype(np.int64)
        return found

    def filled_at_most_ns(self, share: float) -> int:
        """Return for how long any of the launches runs while at most a share is filled, in ns."""
        return int(self._length[self._is_running & (self._fill <= share)].sum())
