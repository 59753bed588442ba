"""Lists of arrays that a line maps to as many others in each round of a loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct

# Fewer arrays may be variables, and be used by several calls of the line.
LEAST_MAPPED = 3
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, slots=True)
class MappedLists:
    """Arrays that a line maps to others in other rounds of a loop, blocks of the device.

    Attributes:
        own: Those that the line made in an earlier round.
        others: Those that other lines made.
        end: For each of the others, the place after the line has used all of its list.
        result: For each block of the device, the place after the allocation of what it is mapped
            to, which it must not be freed before; 0 if unknown.
    """

    own: np.ndarray
    others: np.ndarray
    end: np.ndarray
    result: np.ndarray


def mapped_lists(device: DeviceBlocks, site: str, found: np.ndarray) -> MappedLists:
    """Return the lists that a line uses up while it makes as many arrays that outlive them.

    All arrays of a list are made before the line uses the first of them, and freed after it has
    used the last of them. None if the line makes a list that is used after it has made the next.

    Args:
        device: The device's blocks.
        site: The call site of the line.
        found: Blocks of a list that are known to be mapped by it, and their line's.
    """
    lists = _Lists(device, site)
    own, others = list[Any](), list[Any]()
    result = np.zeros(len(device.size), np.int64)
    of_found = np.isin(device.site, device.site[found])
    for blocks, results in lists.mapped():
        result[blocks] = device.begin[results] + 1
        if lists.is_made_there[blocks[0]]:
            own.append(blocks)
        elif not of_found[blocks].any():
            others.append(blocks)
    made = _joined(own)
    if not own or lists.are_needed_later(made, max(map(len, own))):
        return MappedLists(made[:0], made[:0], made[:0], result)
    end = [np.full(len(each), device.after_lines(lists.calls[each]).max()) for each in others]
    return MappedLists(made, _joined(others), _joined(end), result)


def mapped_by_peak_line(
    device: DeviceBlocks,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays that the line of the peak makes and keeps, and those it uses up.

    Both are at the peak; the others were there before the line, which is their last use, but
    not that of the round that reaches the peak. Also return the places after their last uses,
    where a loop of several lines could free them.
    """
    made, last = device.made_until, device.used.last[device.number]
    peak_line_end = made[device.of_peak].max(initial=-1)
    of_peak = made == peak_line_end
    known = device.is_used & device.is_freed & ~device.is_shared & ~device.is_initial
    is_used_there = device.statements.of_calls(last)[1] == peak_line_end
    places = device.after_calls(last)
    spent = device.at_peak & known & ~of_peak & is_used_there & (places < device.peak_place)
    # A loop of one line makes and frees them in one run.
    outlive = device.end > device.end[spent].max(initial=device.peak_place)
    kept = device.at_peak & of_peak & (device.is_returned | outlive)
    return kept, spent, places


def kept_since(device: DeviceBlocks, blocks: np.ndarray) -> int:
    """Return how many arrays at the peak were made and returned since others were last used.

    Since the earliest of these last uses.
    """
    since = device.call_times[device.used.last[device.number[blocks]]].min()
    new = device.used.blocks.begin[device.number] >= since
    return int(np.count_nonzero(device.at_peak & new & device.is_returned))


def are_used_together(device: DeviceBlocks, blocks: np.ndarray) -> bool:
    """Return whether blocks were all made before any of them was last used, as in a list."""
    calls, number = device.used.last[device.number[blocks]], device.number[blocks]
    return bool(device.used.blocks.begin[number].max() <= device.call_times[calls].min())


class _Lists:
    """The arrays that a line of the program uses for the last time.

    Attributes:
        calls: For each block of the device, the row of ``api_calls`` that last uses it.
        is_made_there: Whether that line, or what it calls, makes the block.
    """

    def __init__(self, device: DeviceBlocks, site: str) -> None:
        blocks, number = device.used.blocks, device.number
        self._device, self.calls = device, device.used.last[number]
        self._begin, end = blocks.begin[number], blocks.end[number]
        self._end = np.where(end < 0, _NEVER, end)
        self._last = device.call_times[self.calls]
        self.is_made_there = _are_of(device, site, device.stack)
        spent = device.is_freed & device.is_used & ~device.is_shared & ~device.is_initial
        spent &= ~device.is_used_at_any_time & (device.stack != 0)
        stacks = stacks_of(device.recording.tables, np.maximum(self.calls, 0))
        self._is_spent = spent & _are_of(device, site, np.where(spent, stacks, 0))
        made = np.flatnonzero(self.is_made_there)
        self._made = made[np.argsort(self._begin[made], kind="stable")]

    def mapped(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield lists that the line maps, in the order of their last uses, and the results."""
        rows = np.flatnonzero(self._is_spent)
        rows = rows[~self.is_made_there[rows] | (self._made_until_last(rows) >= LEAST_MAPPED - 1)]
        stack = self._device.stack[rows]
        order = np.lexsort((self._last[rows], stack))
        rows, stack = rows[order], stack[order]
        starts = (stack[1:] != stack[:-1]) | (self._end[rows[:-1]] <= self._last[rows[1:]])
        made = self._begin[self._made]
        for each in np.split(rows, np.flatnonzero(starts) + 1):
            complete, used = self._begin[each].max(initial=-1), self._last[each]
            if len(each) < LEAST_MAPPED or complete > used.min():
                continue
            free = self._end[each]
            between = slice(*np.searchsorted(made, [complete + 1, free.min()]))
            results = self._made[between][self._end[self._made[between]] > free.max()]
            if used.max() < free.min() and len(results) == len(each):
                yield each, results

    def _made_until_last(self, rows: np.ndarray) -> np.ndarray:
        """Return how many blocks the call stack of each of some makes between it and its last use.

        What a call makes and uses itself has hardly any.
        """
        stack = self._device.stack.astype(np.int64)
        times = np.unique(np.concatenate([self._begin, self._last[rows]]), return_inverse=True)[1]
        count = np.int64(len(times) + 1)
        keys = np.sort(stack * count + times[: len(stack)])
        begin, last = (
            np.searchsorted(keys, stack[rows] * count + each, side="right")
            for each in (times[rows], times[len(stack) :])
        )
        made: np.ndarray = last - begin
        return made

    def are_needed_later(self, blocks: np.ndarray, count: int) -> bool:
        """Return whether others of the calls that made some are used after their list is replaced.

        Args:
            blocks: The blocks.
            count: How many arrays such a list has at most.
        """
        device = self._device
        same = np.isin(device.stack, distinct(device.stack[blocks]))
        times = np.sort(self._begin[same])
        rows = np.flatnonzero(same & device.is_used)
        rows = rows[~np.isin(rows, blocks)]
        after = np.searchsorted(times, self._last[rows]) - np.searchsorted(
            times, self._begin[rows], side="right"
        )
        return bool((after >= count).any())


def _are_of(device: DeviceBlocks, site: str, stacks: np.ndarray) -> np.ndarray:
    """Return which call stacks have a line of the program."""
    frames = device.recording.call_stacks.user_frames
    known = distinct(stacks)
    found = [any(frame.site == site for frame in frames(each)) for each in known.tolist()]
    are_of: np.ndarray = np.array(found, bool)[np.searchsorted(known, stacks)]
    return are_of


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *arrays])
