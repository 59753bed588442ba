"""Arrays that the variable of a loop no longer has, since their line has made newer ones."""

import numpy as np

from gpuviz.advice.arrays.allocated_blocks import AllocatedBlocks
from gpuviz.advice.source.own_lines import is_own


def superseded(device: AllocatedBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return where the second array after each one that a line returns is made; else its end.

    A line returns what is live when its run ends. Its variable then has the first array after it,
    at the latest. Only of arrays that are not used afterwards.

    Also return whether something else than that variable keeps each, such as a list: it is still
    allocated there. What keeps most arrays of a line keeps its last two as well.
    """
    blocks, number, place = device.used.blocks, device.number, device.end.copy()
    # A function of a library may make several arrays in one call.
    is_own_call = is_own(device.recording, device.stack) & (device.stack != 0)
    returned = np.flatnonzero(device.is_returned & is_own_call & ~device.is_initial)
    returned = returned[np.lexsort((device.begin[returned], device.stack[returned]))]
    before, after = returned[:-2], returned[2:]
    same = device.stack[before] == device.stack[after]
    before, after = before[same], after[same]
    calls = device.used.last[number[before]]
    used = np.where(calls >= 0, device.call_times[calls], -1)
    unused = used < blocks.begin[number[after]]
    place[before[unused]] = np.minimum(device.begin[after], device.end[before])[unused]
    kept = place < device.end
    _, of_stack, made = np.unique(device.stack[returned], return_inverse=True, return_counts=True)
    kept[returned] |= (np.bincount(of_stack, kept[returned], len(made)) * 2 >= made)[of_stack]
    return place, kept
