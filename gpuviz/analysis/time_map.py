"""What the times of a recording become when some of them move."""

import numpy as np


class TimeMap:
    """A function of time that is known at some moments.

    Between two of them, time passes as before, until the second one; after the last and before
    the first one likewise.

    Args:
        before: When the moments are, in any order.
        after: When they are to be.
    """

    def __init__(self, before: np.ndarray, after: np.ndarray) -> None:
        order = np.lexsort((after, before))
        self._before = before[order]
        self._after = np.maximum.accumulate(after[order])

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """Return what some times become; the latest where a moment is to be at several ones."""
        if not len(self._before):
            return times
        last = np.searchsorted(self._before, times, side="right") - 1
        known = np.maximum(last, 0)
        moved = self._after[known] + times - self._before[known]
        limit = np.append(self._after, np.iinfo(np.int64).max)[last + 1]
        limited: np.ndarray = np.minimum(moved, limit)
        return limited

    def earliest(self, times: np.ndarray) -> np.ndarray:
        """Return what some times become; the earliest where a moment is to be at several ones."""
        places = np.searchsorted(self._before, times, side="left")
        known = np.append(self._before, np.iinfo(np.int64).max)[places] == times
        found: np.ndarray = np.where(known, np.append(self._after, 0)[places], self(times))
        return found
