"""Writes that overwrite a whole block, for certain or if their kernel leaves nothing out."""

import re

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import WRITE, block_threads, kernel_threads
from gpuviz.advice.arrays.part_reads import elements_of_torch
from gpuviz.advice.replay.trace import COPY, KERNEL, KINDS
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named

_MEMSET = KINDS.index("memset")
# Kernels that write where an index or a mask says.
_CHOOSES = re.compile(r"scatter|put|index|mask|where|choose|place", re.IGNORECASE)
# CuPy's elementwise kernels have a thread for each element, and thread blocks of so many.
_BLOCK = 128
_ELEMENT_BYTES = (1, 2, 4, 8, 16)


def overwrites(device: DeviceBlocks, touches: np.ndarray, work: np.ndarray) -> np.ndarray:
    """Return which of some writes cover their whole block.

    They are memsets and copies of as many bytes as the block has, and elementwise functions of CuPy
    whose output and an input have as many elements as the block, all from its beginning.

    Args:
        device: The blocks of a device.
        touches: Rows of `Touches` that only write.
        work: The number in the schedule of the activity of each.
    """
    used, launches, schedule = device.used, device.elementwise, device.schedule
    work = np.minimum(work, len(schedule.kind) - 1)
    exact = are_exact(device, touches, work)
    like = launches.at_begin & (launches.kind >= 0)
    like &= launches.source_elements == launches.elements[launches.launch]
    has_like = np.zeros(len(launches), bool)
    has_like[launches.launch[like]] = True
    calls = launches.call[launches.is_whole & _are_unmasked(device) & has_like]
    covers: np.ndarray = used.at_begin[touches] & (exact | np.isin(used.call[touches], calls))
    return covers


def are_exact(device: DeviceBlocks, touches: np.ndarray, work: np.ndarray) -> np.ndarray:
    """Return which of some writes are memsets and copies of as many bytes as the block has."""
    used, schedule = device.used, device.schedule
    written = plain(device.recording.tables["activities"]["bytes"])[schedule.rows[work]]
    requested = used.blocks.requested[used.block[touches]]
    exact: np.ndarray = np.isin(schedule.kind[work], (COPY, _MEMSET)) & (written >= requested)
    return exact


def may_overwrite(device: DeviceBlocks, touches: np.ndarray, work: np.ndarray) -> np.ndarray:
    """Return which of some touches are by kernels that overwrite a block if they leave nothing out.

    They only write it, from its beginning, and have a thread for each 16 bytes or more; those with
    the thread blocks of CuPy have exactly one for each element. No index or mask chooses where.
    """
    used, launches, schedule = device.used, device.elementwise, device.schedule
    work = np.minimum(work, len(schedule.kind) - 1)
    requested = used.blocks.requested[used.block[touches]]
    able = (used.mode[touches] == WRITE) & used.at_begin[touches] & (used.activity[touches] >= 0)
    able &= schedule.kind[work] == KERNEL
    able &= (used.bytes[touches] == 0) | (used.bytes[touches] >= requested)
    tables, rows = device.recording.tables, schedule.rows[work]
    able &= ~are_named(tables, plain(tables["activities"]["name"])[rows], _CHOOSES.search)
    threads = kernel_threads(device.recording, rows)
    fits = np.zeros(len(touches), bool)
    for size in _ELEMENT_BYTES:
        rest = threads - requested // size
        fits |= (requested % size == 0) & (rest >= 0) & (rest < _BLOCK)
    of_torch = elements_of_torch(device.recording, rows)
    others = np.where(block_threads(device.recording, rows) == _BLOCK, 0, threads)
    fits |= np.maximum(others, of_torch) * _ELEMENT_BYTES[-1] >= requested
    partial = launches.call[~(launches.is_whole & _are_unmasked(device))]
    found: np.ndarray = able & fits & ~np.isin(used.call[touches], partial)
    return found


def _are_unmasked(device: DeviceBlocks) -> np.ndarray:
    """Return which launches of elementwise functions have no mask, which is the last input."""
    return device.elementwise.where(
        lambda each: (
            bool(each.inputs)
            and (each.name == "copy" or (each.inputs[-1] != "bool" and each.name != "copy_where"))
        )
    )
