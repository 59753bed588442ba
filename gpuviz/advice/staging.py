"""Copies on the host to pinned memory, from which a library uploads an array."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.sampled_work import called_function
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

_TO_DEVICE = DICTIONARIES["activities", "copy_kind"].index("host_to_device")
_PINNED = DICTIONARIES["activities", "host_memory"].index("pinned")
# What one thread copies in memory, in bytes per second; a third to three times of it is taken for
# that (10 to 12 GB/s were measured on an H100's host).
_HOST_RATE = 10e9
_MOST_FACTOR = 3


def uploaded_bytes(recording: "RecordingData", calls: "NDArray[Any]") -> "NDArray[Any]":
    """Return how many bytes each call copies from pinned memory to a device; 0 of other calls."""
    activities, table = recording.tables["activities"], recording.tables["api_calls"]
    kinds, memories = (
        codes(activities[name], DICTIONARIES["activities", name])
        for name in ("copy_kind", "host_memory")
    )
    rows = np.flatnonzero((kinds == _TO_DEVICE) & (memories == _PINNED))
    launched = plain(activities["correlation"])[rows]
    found = first_rows(launched, plain(table["correlation"])[calls])
    sizes: NDArray[Any] = np.append(plain(activities["bytes"])[rows].astype(np.int64), 0)[found]
    return sizes


def fits_copy(sizes: "NDArray[Any]", spent_ns: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether the host may have copied as many bytes in each time."""
    expected = sizes * 1e9 / _HOST_RATE
    fits: NDArray[Any] = (spent_ns * _MOST_FACTOR >= expected) & (sizes > 0)
    fits &= spent_ns <= expected * _MOST_FACTOR
    return fits


def is_staging(
    recording: "RecordingData",
    stacks: tuple[int, int],
    calls: "NDArray[Any]",
    spent_ns: "NDArray[Any]",
) -> bool:
    """Return whether a library copies the program's arrays to pinned memory and uploads them.

    It does if one of its functions, called by one line of the program, is busy for about as long as
    that takes, and then uploads as many bytes from pinned memory.

    Args:
        recording: The recording.
        stacks: The call stacks in which the host is busy, at the beginning and at the end.
        calls: The calls that follow, rows of ``api_calls``.
        spent_ns: For how long the host is busy before each of them.
    """
    uploading = np.unique(plain(recording.tables["api_calls"]["stack"])[calls]).tolist()
    functions = {_library_call(recording, stack) for stack in (*stacks, *uploading)}
    if len(functions) > 1 or None in functions:
        return False
    sizes = uploaded_bytes(recording, calls)
    return bool((sizes > 0).all() and fits_copy(sizes.sum(), spent_ns.sum()))


def _library_call(recording: "RecordingData", stack: int) -> tuple[str, str, str] | None:
    """Return the line of the program and the library function that it calls; None without one."""
    name, library = called_function(recording.call_stacks.frames(stack))
    return (recording.call_stacks.call_site(stack)[0], name, library) if name else None
