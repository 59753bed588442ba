"""Positions of ids in a column."""

import numpy as np

from gpuviz import _core


def first_rows(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the first row of ``known`` with each wanted id; -1 if there is none, or for id 0."""
    is_narrow = known.dtype == np.uint32 and wanted.dtype == np.uint32
    kind = np.uint32 if is_narrow else np.int64
    found: np.ndarray = np.asarray(
        _core.first_rows(np.ascontiguousarray(known, kind), np.ascontiguousarray(wanted, kind))
    )
    return found
