"""Kernels of CuPy's reductions."""

import re

import numpy as np

from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named

_OF_CUB = r".*\bDevice\w*Reduce\w*Kernel\b"
# Its own kernels and those of CUB.
_REDUCTION = re.compile(
    r"cupy_(cub_)?(nan)?(sum|prod|max|min|amax|amin|mean|any|all|argmax|argmin|count_nonzero"
    rf"|var_core|l[012]?norm)(_|$)|{_OF_CUB}"
)
_CUB_KERNEL = re.compile(_OF_CUB)


def are_reductions(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return whether some rows of ``activities`` are kernels of CuPy's reductions."""
    names = plain(recording.tables["activities"]["name"])[activities]
    return are_named(recording.tables, names, _REDUCTION.match)


def are_of_cub(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return whether some rows of ``activities`` are kernels of CUB's reductions."""
    names = plain(recording.tables["activities"]["name"])[activities]
    return are_named(recording.tables, names, _CUB_KERNEL.match)
