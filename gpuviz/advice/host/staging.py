"""Copies on the host to pinned memory, from which a library uploads an array."""

import numpy as np

from gpuviz.analysis.sampled_work import called_function
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_TO_DEVICE = DICTIONARIES["activities", "copy_kind"].index("host_to_device")
_PINNED = DICTIONARIES["activities", "host_memory"].index("pinned")
# What one thread copies in memory, in bytes per second; a third to three times of it is taken for
# that (10 to 12 GB/s were measured on an H100's host).
_HOST_RATE = 10e9
_MOST_FACTOR = 3
# Between the first call after the copy on the host and the upload.
_AT_ONCE_NS = 500_000


def uploaded_bytes(recording: RecordingData, calls: np.ndarray) -> np.ndarray:
    """Return how many bytes each call copies from pinned memory to a device; 0 of other calls."""
    activities, table = recording.tables["activities"], recording.tables["api_calls"]
    kinds, memories = (
        codes(activities[name], DICTIONARIES["activities", name])
        for name in ("copy_kind", "host_memory")
    )
    rows = np.flatnonzero((kinds == _TO_DEVICE) & (memories == _PINNED))
    launched = plain(activities["correlation"])[rows]
    found = first_rows(launched, plain(table["correlation"])[calls])
    sizes: np.ndarray = np.append(plain(activities["bytes"])[rows].astype(np.int64), 0)[found]
    return sizes


def fits_copy(sizes: np.ndarray, spent_ns: np.ndarray) -> np.ndarray:
    """Return whether the host may have copied as many bytes in each time."""
    expected = sizes * 1e9 / _HOST_RATE
    fits: np.ndarray = (spent_ns * _MOST_FACTOR >= expected) & (sizes > 0)
    fits &= spent_ns <= expected * _MOST_FACTOR
    return fits


def is_staging(
    recording: RecordingData,
    stacks: tuple[int, int],
    calls: np.ndarray,
    spent_ns: np.ndarray,
    *,
    is_native: bool,
) -> bool:
    """Return whether a library copies the program's arrays to pinned memory and uploads them.

    It does if one of its functions, called by one line of the program, or a thread of its own for
    which that waits, is busy for about as long as that takes, and then uploads as many bytes from
    pinned memory.

    Args:
        recording: The recording.
        stacks: The call stacks in which the host is busy, at the beginning and at the end.
        calls: The calls that follow, rows of ``api_calls``.
        spent_ns: For how long the host is busy before each of them.
        is_native: Whether a thread without Python code is busy.
    """
    uploading = np.unique(plain(recording.tables["api_calls"]["stack"])[calls]).tolist()
    if is_native:
        is_of_library = uploading == [0]
        calls = _next_uploads(recording, calls)
    else:
        functions = {_library_call(recording, stack) for stack in (*stacks, *uploading)}
        is_of_library = len(functions) == 1 and None not in functions
    if not is_of_library or (calls < 0).any():
        return False
    sizes = uploaded_bytes(recording, calls)
    return bool((sizes > 0).all() and fits_copy(sizes.sum(), spent_ns.sum()))


def _next_uploads(recording: RecordingData, calls: np.ndarray) -> np.ndarray:
    """Return the first upload of its thread at each call or shortly after it; -1 without one.

    XLA records events before a copy.
    """
    table = recording.tables["api_calls"]
    threads, times = (plain(table[name]) for name in ("thread", "time"))
    uploads = np.flatnonzero(uploaded_bytes(recording, np.arange(table.num_rows)))
    found = np.full(len(calls), -1)
    for thread in np.unique(threads[calls]).tolist():
        own = uploads[threads[uploads] == thread]
        own = own[np.argsort(times[own], kind="stable")]
        of_thread = np.flatnonzero(threads[calls] == thread)
        place = np.searchsorted(times[own], times[calls[of_thread]])
        after = np.append(own, -1)[place]
        is_soon = times[after] - times[calls[of_thread]] <= _AT_ONCE_NS
        found[of_thread] = np.where((after >= 0) & is_soon, after, -1)
    return found


def _library_call(recording: RecordingData, stack: int) -> tuple[str, str, str] | None:
    """Return the line of the program and the library function that it calls; None without one."""
    name, library = called_function(recording.call_stacks.frames(stack))
    return (recording.call_stacks.call_site(stack)[0], name, library) if name else None
