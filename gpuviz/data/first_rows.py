"""Positions of ids in a column."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray


def first_rows(known: "NDArray[Any]", wanted: "NDArray[Any]") -> "NDArray[Any]":
    """Return the first row of ``known`` with each wanted id; -1 if there is none, or for id 0."""
    is_narrow = known.dtype == np.uint32 and wanted.dtype == np.uint32
    kind = np.uint32 if is_narrow else np.int64
    found: NDArray[Any] = np.asarray(
        _core.first_rows(np.ascontiguousarray(known, kind), np.ascontiguousarray(wanted, kind))
    )
    return found
