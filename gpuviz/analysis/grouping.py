"""Grouping of rows by equal keys, with totals per group."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core


class Groups:
    """The groups of rows with equal keys, in the order of their first rows.

    Args:
        keys: At least one column of at most 32 bits or of numbers below 2**32, of equal lengths.

    Attributes:
        first_rows: The first row of each group.
        counts: The number of rows of each group.
    """

    def __init__(self, keys: Sequence[np.ndarray]) -> None:
        self._numbers, self.first_rows, self.counts = _combined(keys)

    def totals(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return ``sum``, ``least`` and ``greatest`` of each group's integers."""
        return _core.group_totals(self._numbers, _whole(values), len(self.counts))

    def values(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the totals and the ``median`` of each group's integers, rounded down."""
        medians: Any = _core.group_medians(self._numbers, _whole(values), len(self.counts))
        return self.totals(values) | {"median": medians}

    def medians(self, values: np.ndarray, chosen: np.ndarray) -> pa.Array:
        """Return the median of each group's values, rounded down between two values.

        Args:
            values: An integer for each row.
            chosen: Mask of the rows that count; a group without any gets null.
        """
        groups = len(self.counts)
        numbers, of_rows = self._numbers[chosen], _whole(values[chosen])
        counts = _core.group_totals(numbers, of_rows, groups)["count"]
        return pa.array(_core.group_medians(numbers, of_rows, groups), mask=counts == 0)

    def distinct(self, column: np.ndarray) -> list[list[int]]:
        """Return a row for each distinct value in each group, the most frequent value first.

        Equally frequent values are in the order of their first rows.
        """
        _, first, counts = _combined([self._numbers, column])
        rows: list[list[int]] = [[] for _ in self.counts]
        for row in first[np.argsort(-counts.astype(np.int64), kind="stable")].tolist():
            rows[self._numbers[row]].append(row)
        return rows

    def typical_rows(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the first row of each group with the group's most frequent combination of values.

        If several combinations are equally frequent, the one that occurs first counts.

        Args:
            columns: At most three columns of keys.
        """
        nothing = np.zeros_like(self._numbers)
        first, second, third = [*map(_key, columns), nothing, nothing][:3]
        found: Any = _core.typical_rows(self._numbers, first, second, third, len(self.counts))
        rows: np.ndarray = found
        return rows


def numbered(*keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each row, equal for equal keys, and the first row of each number.

    Args:
        keys: As of `Groups`.
    """
    numbers, first, _ = _combined(keys)
    return numbers, first


def _combined(
    keys: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers in the order of first occurrence, their first rows and their counts."""
    first, *others = map(_key, keys)
    found: Any = _core.numbered(first, others[0] if others else np.zeros_like(first))
    for key in others[1:]:
        found = _core.numbered(found[0], key)
    numbers, first_rows, counts = found
    return numbers, first_rows, counts


def _key(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.uint32)


def _whole(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.int64)


def components(count: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return for each of some nodes the least number of a node that pairs connect it with."""
    label = np.arange(count)
    while True:
        least = np.minimum(label[source], label[target])
        np.minimum.at(label, source, least)
        np.minimum.at(label, target, least)
        following = label[label]
        if (following == label).all() and (label[source] == label[target]).all():
            return label
        label = following
