"""Grouping of rows by equal keys, with totals per group."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray


class Groups:
    """The groups of rows with equal keys, in the order of their first rows.

    Args:
        keys: At least one column; all of one length.
    """

    def __init__(self, keys: "Sequence[NDArray[Any]]") -> None:
        import numpy as np

        self._codes = _combined(keys)
        self.counts = np.bincount(self._codes)
        self._starts = np.cumsum(self.counts) - self.counts
        self._order = np.argsort(self._codes, kind="stable")

    def sums(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the sum of each group's values."""
        import numpy as np

        return np.add.reduceat(values[self._order], self._starts) if values.size else values

    def minima(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the least of each group's values."""
        import numpy as np

        return np.minimum.reduceat(values[self._order], self._starts) if values.size else values

    def maxima(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the greatest of each group's values."""
        import numpy as np

        return np.maximum.reduceat(values[self._order], self._starts) if values.size else values

    def medians(
        self,
        values: "NDArray[Any]",
        chosen: "NDArray[Any] | None" = None,
    ) -> "pa.Array":
        """Return the median of each group's values, between two of them rounded down.

        Args:
            values: A whole number for each row.
            chosen: Which rows count, all if None; a group of none has null.
        """
        import numpy as np
        import pyarrow as pa

        rows = np.arange(len(values)) if chosen is None else np.flatnonzero(chosen)
        codes = self._codes[rows]
        ordered = values[rows][np.lexsort((values[rows], codes))]
        counts = np.bincount(codes, minlength=len(self.counts))
        starts = np.cumsum(counts) - counts
        present = counts > 0
        lower = ordered[starts[present] + (counts[present] - 1) // 2]
        upper = ordered[starts[present] + counts[present] // 2]
        medians = np.zeros(len(counts), np.int64)
        medians[present] = lower + (upper - lower) // 2
        return pa.array(medians, mask=~present)

    def typical_rows(self, columns: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
        """Return a row for each group that has its most frequent combination of values.

        Of several that are as frequent, it is the first; of its rows, the first.
        """
        import numpy as np

        combinations = _combined([self._codes, *columns])
        counts = np.bincount(combinations)
        _, first = np.unique(combinations, return_index=True)
        order = np.lexsort((first, -counts, self._codes[first]))
        _, best = np.unique(self._codes[first][order], return_index=True)
        return first[order][best]


def _combined(keys: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
    """Return a number for each row, the same for equal keys, counted up as they first come."""
    import pyarrow as pa

    combined = _numbered(pa.array(keys[0]))
    for key in keys[1:]:
        numbers = _numbered(pa.array(key))
        combined = _numbered(pa.array(combined * (int(numbers.max(initial=0)) + 1) + numbers))
    return combined


def _numbered(values: "pa.Array") -> "NDArray[Any]":
    numbers: NDArray[Any] = values.dictionary_encode().indices.to_numpy().astype("int64")
    return numbers
