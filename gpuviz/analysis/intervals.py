"""The union of many intervals of time."""

import numpy as np

from gpuviz import _core


def overlaps(
    begin: np.ndarray, end: np.ndarray, other: np.ndarray, other_end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return where intervals overlap with others: their places, and begins and ends of the overlap.

    Those of each side do not overlap with each other and are in order of time.
    """
    first = np.searchsorted(other_end, begin, side="right")
    counts = np.maximum(np.searchsorted(other, end) - first, 0)
    place = np.repeat(np.arange(len(begin)), counts)
    within = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    other_place = first[place] + within
    return (
        place,
        other_place,
        np.maximum(begin[place], other[other_place]),
        np.minimum(end[place], other_end[other_place]),
    )


class Intervals:
    """The union of intervals.

    Args:
        begin: Their begins in ns, in any order.
        end: Their ends in ns; not before the begins.

    Attributes:
        begin: The begins of the union's parts, ascending.
        end: Their ends.
    """

    def __init__(self, begin: np.ndarray, end: np.ndarray) -> None:
        order = np.argsort(begin, kind="stable")
        begin, until = begin[order], np.maximum.accumulate(end[order])
        first = np.ones(len(begin), bool)
        first[1:] = begin[1:] > until[:-1]
        last = np.append(first[1:], True)[: len(begin)]
        self.begin, self.end = begin[first], until[last]

    @property
    def length(self) -> int:
        """The length of the union in ns."""
        return int((self.end - self.begin).sum())

    def within(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return how much of each of the given intervals is covered, in ns."""
        parts = {"begin": self.begin, "end": self.end}
        covered: np.ndarray = np.asarray(_core.covered(parts, begin, end))
        return covered

    def common(self, other: "Intervals") -> "Intervals":
        """Return the time that is in both."""
        return self._common(other.begin, other.end)

    def without(self, other: "Intervals") -> "Intervals":
        """Return the time that is in this one and not in the other."""
        ends = np.iinfo(np.int64)
        return self._common(np.append(ends.min, other.end), np.append(other.begin, ends.max))

    def joined(self, other: "Intervals") -> "Intervals":
        """Return the time that is in any of both."""
        return Intervals(
            np.concatenate([self.begin, other.begin]), np.concatenate([self.end, other.end])
        )

    def _common(self, begin: np.ndarray, end: np.ndarray) -> "Intervals":
        _, _, begin, end = overlaps(self.begin, self.end, begin, end)
        lasts = begin < end
        return Intervals(begin[lasts], end[lasts])
