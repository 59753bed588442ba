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
        keys: At least one column of at most 32 bits or of numbers below 2**32; all of one length.

    Attributes:
        first_rows: The first row of each group.
        counts: How many rows each group has.
    """

    def __init__(self, keys: "Sequence[NDArray[Any]]") -> None:
        self._numbers, self.first_rows, self.counts = _combined(keys)

    def totals(self, values: "NDArray[Any]") -> "dict[str, NDArray[Any]]":
        """Return ``sum``, ``least`` and ``greatest`` of each group's whole numbers."""
        return _core.group_totals(self._numbers, _whole(values), len(self.counts))

    def values(self, values: "NDArray[Any]") -> "dict[str, NDArray[Any]]":
        """Return the totals and the ``median`` of each group's whole numbers, rounded down."""
        medians: Any = _core.group_medians(self._numbers, _whole(values), len(self.counts))
        return self.totals(values) | {"median": medians}

    def medians(self, values: "NDArray[Any]", chosen: "NDArray[Any]") -> "pa.Array":
        """Return the median of each group's values, between two of them rounded down.

        Args:
            values: A whole number for each row.
            chosen: Which rows count; a group of none has null.
        """
        import pyarrow as pa

        groups = len(self.counts)
        numbers, of_rows = self._numbers[chosen], _whole(values[chosen])
        counts = _core.group_totals(numbers, of_rows, groups)["count"]
        return pa.array(_core.group_medians(numbers, of_rows, groups), mask=counts == 0)

    def typical_rows(self, columns: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
        """Return a row for each group that has its most frequent combination of values.

        Of several that are as frequent, it is the first; of its rows, the first.
        """
        import numpy as np

        _, first, counts = _combined([self._numbers, *columns])
        group = self._numbers[first]
        most = _core.group_totals(group, _whole(counts), len(self.counts))["greatest"]
        # Combinations come in the order of their first rows: the last written is the first.
        best = np.flatnonzero(counts == most[group])[::-1]
        rows = np.zeros(len(self.counts), np.int64)
        rows[group[best]] = first[best]
        return rows


def numbered(keys: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return a number for each row, the same for equal keys; and the first row of each number."""
    numbers, first, _ = _combined([keys])
    return numbers, first


def _combined(
    keys: "Sequence[NDArray[Any]]",
) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
    """Return numbers counted up as keys first come, their first rows, and how many have each."""
    import numpy as np

    first, *others = (np.ascontiguousarray(key.astype(np.uint32, copy=False)) for key in keys)
    found: Any = _core.numbered(first, others[0] if others else np.zeros_like(first))
    for key in others[1:]:
        found = _core.numbered(found[0], key)
    numbers, first_rows, counts = found
    return numbers, first_rows, counts


def _whole(values: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    return np.ascontiguousarray(values, np.int64)
