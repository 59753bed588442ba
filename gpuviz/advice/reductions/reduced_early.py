"""Lifetimes of arrays that a program reduces when it has made them, instead of at last."""

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.reductions.reduction_times import in_loops_of_one_line
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.data.columns import plain


def reduced_early(
    device: DeviceBlocks, lists: list[np.ndarray], *, are_of_calls: bool = False
) -> Change:
    """Return the lifetimes of the blocks of lists that are reduced before they are joined.

    Args:
        device: All blocks.
        lists: The blocks of each, in the order of their allocations.
        are_of_calls: Whether a list may have an array of each call of a module, which ends before
            the next one begins, also where one line calls it in a loop.
    """
    blocks = np.concatenate(lists)
    used = device.used
    place = device.place[used.block]
    is_before = (place >= 0) & (used.call != device.last_known[place])
    calls = np.full(len(device.size), -1)
    calls[place[is_before]] = used.call[is_before]
    before = calls[blocks]
    begin, end = device.begin[blocks], device.end[blocks]
    after = np.where(before >= 0, device.after_lines(before), begin)
    of_loop = [in_loops_of_one_line(device, each, each, calls[each]) for each in lists]
    after = np.minimum(after, np.concatenate(of_loop))
    following = np.concatenate(
        [np.append(device.begin[each][1:], device.end[each[-1:]]) for each in lists]
    )
    if are_of_calls:
        of_modules = [_are_of_one_module(device, each, calls[each]) for each in lists]
        after = np.where(np.concatenate(of_modules), np.minimum(after, following), after)
    return Change(blocks, begin, np.clip(np.maximum(after, following), begin, end))


def _are_of_one_module(device: DeviceBlocks, blocks: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return which blocks of a list are used for the last time before the next one is allocated.

    Args:
        device: All blocks.
        blocks: Those of the list; none is, unless one module of PyTorch makes all of them.
        calls: The call that uses each for the last time; -1 if there is none.
    """
    stack = int(device.stack[blocks[0]])
    if (device.stack[blocks] != stack).any() or not device.recording.call_stacks.module(stack):
        return np.zeros(len(blocks), bool)
    times = plain(device.recording.tables["api_calls"]["time"])
    begins = device.used.blocks.begin[device.number[blocks]]
    used: np.ndarray = np.where(calls >= 0, times[calls], begins)
    return np.append(used[:-1] < begins[1:], False)
