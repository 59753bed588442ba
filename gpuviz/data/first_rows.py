"""Positions of ids in a column."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Ids with at most this many gaps per id are looked up in an array indexed by id.
_DENSE = 4


def first_rows(known: "NDArray[Any]", wanted: "NDArray[Any]") -> "NDArray[Any]":
    """Return the first row of ``known`` with each wanted id; -1 if there is none, or for id 0."""
    if not known.size:
        return np.full(len(wanted), -1)
    low, high = int(known.min()), int(known.max())
    if high - low < _DENSE * len(known):
        rows = np.full(high - low + 3, -1)
        rows[known[::-1] - np.int64(low - 1)] = np.arange(len(known))[::-1]
        places = np.clip(wanted.astype(np.int64) - (low - 1), 0, high - low + 2)
        dense: NDArray[Any] = np.where(wanted != 0, rows[places], -1)
        return dense
    order = np.argsort(known, kind="stable")
    found = np.searchsorted(known, wanted, sorter=order)
    first = order[np.minimum(found, len(known) - 1)]
    return np.where((known[first] == wanted) & (wanted != 0), first, -1)
