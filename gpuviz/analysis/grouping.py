"""Grouping of rows by equal keys, with totals per group."""

from typing import TYPE_CHECKING, Any

from gpuviz import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray


class Groups:
    """The groups of rows with equal keys, in the order of their first rows.

    Args:
        keys: At least one column of at most 32 bits or of numbers below 2**32, of equal lengths.
    """

    def __init__(self, keys: "Sequence[NDArray[Any]]") -> None:
        self._numbers, _, self.counts = _combined(keys)

    def values(self, values: "NDArray[Any]") -> "dict[str, NDArray[Any]]":
        """Return ``sum``, ``least``, ``greatest`` and ``median`` of each group's values.

        Args:
            values: An integer for each row. Medians between two values are rounded down.
        """
        return self._of_rows(self._numbers, values)

    def medians(self, values: "NDArray[Any]", chosen: "NDArray[Any]") -> "pa.Array":
        """Return the median of each group's values, rounded down between two values.

        Args:
            values: An integer for each row.
            chosen: Mask of the rows that count; a group without any gets null.
        """
        import pyarrow as pa

        found = self._of_rows(self._numbers[chosen], values[chosen])
        return pa.array(found["median"], mask=found["count"] == 0)

    def typical_rows(self, columns: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
        """Return the first row of each group with the group's most frequent combination of values.

        If several combinations are equally frequent, the one that occurs first counts.
        """
        import numpy as np

        _, first, counts = _combined([self._numbers, *columns])
        group = self._numbers[first]
        most = self._of_rows(group, counts)["greatest"]
        # Combinations are in the order of their first rows, so in reverse the first one wins.
        best = np.flatnonzero(counts == most[group])[::-1]
        rows = np.zeros(len(self.counts), np.int64)
        rows[group[best]] = first[best]
        return rows

    def _of_rows(
        self, numbers: "NDArray[Any]", values: "NDArray[Any]"
    ) -> "dict[str, NDArray[Any]]":
        import numpy as np

        values = np.ascontiguousarray(values, np.int64)
        return _core.group_values(np.ascontiguousarray(numbers), values, len(self.counts))


def numbered(keys: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return a number for each row, equal for equal keys, and the first row of each number."""
    numbers, first, _ = _combined([keys])
    return numbers, first


def _combined(
    keys: "Sequence[NDArray[Any]]",
) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
    """Return numbers in the order of first occurrence, their first rows and their counts."""
    import numpy as np

    first, *others = (np.ascontiguousarray(key.astype(np.uint32, copy=False)) for key in keys)
    found: Any = _core.numbered(first, others[0] if others else np.zeros_like(first))
    for key in others[1:]:
        found = _core.numbered(found[0], key)
    numbers, first_rows, counts = found
    return numbers, first_rows, counts
