"""How much of an array some work reads, where that is known."""

import re

import numpy as np
import pyarrow as pa

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, UNKNOWN, kernel_threads, read_bytes_of_functions
from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named, texts

# PyTorch's kernels that compute each element of one output from one element of each input. Those
# with two numbers in their names have the first as threads of a block, the second as elements of a
# thread.
OF_TORCH = re.compile(
    r"\bat::native::(?:\(anonymous namespace\)::)?"
    r"(?:\w+_)?elementwise_kernel<(?:(?P<threads>\d+), (?P<elements>\d+),)?"
)
# Of other kernels: more than PyTorch 2.11 uses.
_MOST_ELEMENTS = 16
# Of `complex128`; the names of these kernels do not have all types.
_WIDEST = 16


def read_bytes(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return how many bytes some touches read at most; 0 if that is unknown, or if they may write.

    Known are copies, the elementwise functions of CuPy, and those of PyTorch that write an array
    which is new.
    """
    used, tables = device.used, device.recording.tables
    found: np.ndarray = used.bytes[rows].astype(np.int64)
    unknown = np.flatnonzero((found == 0) & (used.activity[rows] >= 0))
    found[unknown] = _copied_bytes(tables["activities"], used.activity[rows[unknown]])
    unknown = unknown[found[unknown] == 0]
    found[unknown] = read_bytes_of_functions(device.recording, used.activity[rows[unknown]])
    # A kernel with few threads for the beginnings of its input and its output may go on to the ends
    # of both.
    largest = _largest_outputs(device, used.call[rows[unknown]])
    is_unsure = used.at_begin[rows[unknown]] & (largest > found[unknown])
    found[unknown[is_unsure]] = 0
    found[used.mode[rows] != READ] = 0
    unknown = np.flatnonzero((found == 0) & (used.activity[rows] >= 0))
    found[unknown] = _of_torch(device, rows[unknown])
    return found


def _largest_outputs(device: DeviceBlocks, calls: np.ndarray) -> np.ndarray:
    """Return how many bytes the largest block has that each call may write from its beginning."""
    used, count = device.used, device.recording.tables["api_calls"].num_rows
    asked = np.zeros(count, bool)
    asked[calls] = True
    can = asked[used.call] & (used.mode != READ) & used.at_begin & (used.bytes == 0)
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, used.call[can], used.blocks.requested[used.block[can]])
    found: np.ndarray = largest[calls]
    return found


def continues(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return which touches are by kernels of PyTorch that continue what an earlier one began.

    What has too many bytes for one kernel is computed by several, with a launch for each. They
    write the array that their call stack has used first.
    """
    used = device.used
    new, same = (
        np.bincount(used.call, each, device.recording.tables["api_calls"].num_rows)
        for each in (_is_new(device), _is_of_same_stack(device))
    )
    call = used.call[rows]
    found: np.ndarray = (new[call] == 0) & (same[call] == 1) & _are_of_torch(device, rows)
    return found


def goes_on_writing(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return which touches of `continues` are those of what the kernels write."""
    found: np.ndarray = continues(device, rows) & _is_of_same_stack(device)[rows]
    return found


def _of_torch(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return how many bytes PyTorch's elementwise kernels read at most; 0 of others and of outputs.

    They have one output. If the kernel is the first to use one of its arrays, that is the output.
    """
    elements = elements_of_torch(device.recording, device.used.activity[rows])
    if not elements.any():
        return elements
    used, is_new = device.used, _is_new(device)
    new = np.bincount(used.call, is_new, device.recording.tables["api_calls"].num_rows)
    is_read = (new[used.call[rows]] == 1) & ~is_new[rows]
    is_read |= continues(device, rows) & ~_is_of_same_stack(device)[rows]
    is_read = (used.mode[rows] == READ) | ((used.mode[rows] == UNKNOWN) & is_read)
    found: np.ndarray = np.where(is_read, elements * _WIDEST, 0)
    return found


def _is_new(device: DeviceBlocks) -> np.ndarray:
    """Return which touches are by the call that first uses their block."""
    used = device.used
    is_new: np.ndarray = used.first[used.block] == used.call
    return is_new


def _is_of_same_stack(device: DeviceBlocks) -> np.ndarray:
    """Return which touches are by the call stack that first used their block."""
    used = device.used
    stacks = plain(device.recording.tables["api_calls"]["stack"])
    first, later = (stacks[each] for each in (used.first[used.block], used.call))
    is_same: np.ndarray = (first == later) & (first != 0)
    return is_same


def _are_of_torch(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    tables, activity = device.recording.tables, device.used.activity[rows]
    named = are_named(tables, plain(tables["activities"]["name"]), OF_TORCH.search)
    of_torch: np.ndarray = (activity >= 0) & named[activity]
    return of_torch


def elements_of_torch(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return how many elements PyTorch's elementwise kernels have at most; 0 if unknown."""
    name = plain(recording.tables["activities"]["name"])[activities]
    known = distinct(name)
    matches = [OF_TORCH.search(text) for text in texts(recording.tables, known)]
    of_thread = [0 if each is None else int(each["elements"] or _MOST_ELEMENTS) for each in matches]
    of_kernel = np.array(of_thread, np.int64)[np.searchsorted(known, name)]
    elements: np.ndarray = of_kernel * kernel_threads(recording, activities)
    return elements


def _copied_bytes(activities: pa.Table, rows: np.ndarray) -> np.ndarray:
    """Return how many bytes the calls of some activities copy or fill; 0 for kernels."""
    sizes, correlations = plain(activities["bytes"]), plain(activities["correlation"])
    found = np.zeros(len(rows), np.int64)
    copies = np.flatnonzero(sizes[rows])
    calls, number = np.unique(correlations[rows[copies]], return_inverse=True)
    parts = np.flatnonzero(sizes)
    place = np.minimum(np.searchsorted(calls, correlations[parts]), max(len(calls) - 1, 0))
    if len(calls):
        same = calls[place] == correlations[parts]
        sums = np.bincount(place[same], sizes[parts[same]], len(calls)).astype(np.int64)
        found[copies] = sums[number.ravel()]
    return found
