"""Addresses that earlier calls left in structures that PyTorch passes to kernels by value."""

import re

import numpy as np

from gpuviz.analysis.lifetimes import Lifetimes
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named, ids_named
from gpuviz.data.tables import DICTIONARIES

_CAT = re.compile(r"\bat::native::.*CatArray")
# The structure of strides before the arrays of this kernel has room for 25 dimensions.
_STRIDED = re.compile(r"\bat::native::elementwise_kernel<")
# Of these functions, the arrays are the last addresses: two inputs and the output, or one and that.
_ARRAYS = {
    3: re.compile(r"\bgpu_kernel_impl_nocast<at::native::(BinaryFunctor|CUDAFunctor_add)<"),
    2: re.compile(r"\bgpu_kernel_impl_nocast<at::native::([AB]UnaryFunctor|CUDAFunctorOn\w+)<"),
}
_MODES = DICTIONARIES["launch_blocks", "mode"]
_UNKNOWN, _READ, _WRITE = (_MODES.index(each) for each in ("unknown", "read", "write"))


def left_by_joins(
    recording: RecordingData,
    blocks: Lifetimes,
    block: np.ndarray,
    call: np.ndarray,
    activity: np.ndarray,
) -> np.ndarray:
    """Return a mask of the touches by addresses that an earlier call left among those of ``cat``.

    PyTorch's kernel for ``cat`` has room for 128 inputs. If the blocks that are not larger than the
    newest one fill that exactly, they are its inputs, and no larger one is.
    """
    left = np.zeros(len(block), bool)
    rows = _of_kernels(recording, _CAT, activity)
    for launch in np.split(rows, np.flatnonzero(np.diff(call[rows])) + 1) if len(rows) else ():
        used = np.unique(block[launch])
        result = used[np.argmax(blocks.begin[used])]
        sizes, whole = blocks.requested[used], blocks.requested[result]
        if sizes[(sizes <= whole) & (used != result)].sum() == whole:
            left[launch] = blocks.requested[block[launch]] > whole
    return left


def of_strided_functions(  # noqa: PLR0913, PLR0917 - the columns of the touches
    recording: RecordingData,
    blocks: Lifetimes,
    block: np.ndarray,
    call: np.ndarray,
    activity: np.ndarray,
    mode: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the modes of touches, and which are left over, of elementwise functions with strides.

    The output precedes the inputs, but addresses in the unused part of the strides precede both. Of
    functions of a known number of arrays, these are the last ones. Otherwise a block that nothing
    has used before has nothing to read, so it is the output. If no block is new, the first one may
    be the output if the same call stack used it first, as of a function in parts; otherwise it is
    not known what the function writes. Where the recording knows that a function writes a new
    block, or not what it does, nothing changes.

    Args:
        recording: The recording.
        blocks: Its blocks.
        block: For each touch, an index of the blocks.
        call: For each touch, the row of ``api_calls``.
        activity: For each touch, the row of ``activities``; -1 if unknown.
        mode: For each touch, ``mode`` of ``launch_blocks`` as a code.
    """
    left = np.zeros(len(call), bool)
    rows = _of_kernels(recording, _STRIDED, activity)
    if not len(rows):
        return mode, left
    first = np.full(len(blocks), -1)
    first[block[::-1]] = call[::-1]
    first = first[block[rows]]
    is_new = first == call[rows]
    is_new &= blocks.alloc[block[rows]] >= recording.manifest.initial_events
    begins = np.flatnonzero(np.diff(call[rows], prepend=-1))
    ends = np.append(begins[1:], len(rows))
    place, none, start = np.arange(len(rows)), len(rows), rows[begins]
    new = np.minimum.reduceat(np.where(is_new, place, none), begins)
    is_any_new = new < none
    stacks = plain(recording.tables["api_calls"]["stack"])
    in_parts = (mode[start] == _WRITE) & (stacks[call[start]] != 0)
    in_parts &= stacks[first[begins]] == stacks[call[start]]
    output = np.where(is_any_new, new, begins)
    is_known = is_any_new | in_parts
    of_arrays = ends - _array_counts(recording, activity[start])
    has_arrays = (of_arrays < ends) & (of_arrays >= begins)
    output = np.where(has_arrays, of_arrays, output)
    is_known = np.where(has_arrays, is_new[output] | ~is_any_new, is_known)
    launch = np.repeat(np.arange(len(begins)), ends - begins)
    as_recorded = (mode[rows] == _UNKNOWN) | (
        is_new & (mode[rows] == _WRITE) & (place != begins[launch])
    )
    changes = ~np.logical_or.reduceat(as_recorded, begins)[launch]
    known = np.where(place == output[launch], _WRITE, _READ)
    known = np.where(is_known[launch], known, _UNKNOWN)
    mode = mode.copy()
    mode[rows] = np.where(changes, known, mode[rows]).astype(mode.dtype)
    left[rows] = changes & is_known[launch] & (place < output[launch])
    return mode, left


def _array_counts(recording: RecordingData, activity: np.ndarray) -> np.ndarray:
    """Return of how many arrays the functions of some kernels are; 0 if that is not known."""
    names = plain(recording.tables["activities"]["name"])[activity]
    counts = np.zeros(len(names), np.int64)
    for count, pattern in _ARRAYS.items():
        counts[are_named(recording.tables, names, pattern.search)] = count
    return counts


def _of_kernels(
    recording: RecordingData, pattern: re.Pattern[str], activity: np.ndarray
) -> np.ndarray:
    """Return the touches by kernels with some names."""
    named = ids_named(recording.tables, pattern.search)
    if not len(named):
        return np.zeros(0, np.int64)
    is_named = np.isin(plain(recording.tables["activities"]["name"]), named)
    return np.flatnonzero((activity >= 0) & np.append(is_named, False)[activity])
