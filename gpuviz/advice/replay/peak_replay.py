"""The peak of memory after changes of the program, computed from the lifetimes of its blocks."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """Other lifetimes of some blocks of a device.

    Attributes:
        blocks: Indices of the device's blocks; one that is allocated several times occurs as often.
        begin: The new place of each allocation; see `PeakReplay`.
        end: The new place of its free; a block that ends where it begins is not allocated at all.
        size: The new sizes in bytes; None if they stay.
        group: Blocks with the same number are changed together or not at all; None if each block
            is changed for itself.
    """

    blocks: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    size: np.ndarray | None = None
    group: np.ndarray | None = None


class PeakReplay:
    """The allocated bytes of a device on a scale of places, as recorded and after changes.

    Args:
        count: The number of places.
        begin: The place of each block's allocation.
        end: The place of its free.
        size: Its size in bytes.

    Attributes:
        peak_place: The first place at which the recorded peak is reached.
        peak_bytes: The allocated bytes there.
    """

    def __init__(self, count: int, begin: np.ndarray, end: np.ndarray, size: np.ndarray) -> None:
        self._count, self._begin, self._end, self._size = count, begin, end, size
        self._recorded = self._steps(np.arange(len(begin)))
        level = self._level(())
        self.peak_place = int(np.argmax(level))
        self.peak_bytes = int(level[self.peak_place])

    def peak_after(self, changes: Iterable[Change]) -> int:
        """Return the peak of allocated bytes after some changes.

        Of several changes of a block, the first counts: the others were meant for its old lifetime,
        and so were the changes of blocks in a group with it. Of changes that only free it earlier,
        the earliest counts: each is known not to need it longer. One that only makes it smaller
        holds for the time that those leave.
        """
        return int(self._level(changes).max(initial=0))

    def peak_place_after(self, changes: Iterable[Change]) -> int:
        """Return the first place at which the peak is reached after some changes."""
        return int(self._level(changes).argmax())

    def most_at_once(self, blocks: np.ndarray) -> int:
        """Return how many bytes of some blocks were allocated at the same time at most."""
        return int(np.cumsum(self._steps(blocks)).max(initial=0))

    def saving(self, change: Change) -> int:
        """Return by how many bytes a change lowers the peak; 0 if it does not."""
        return max(self.peak_bytes - self.peak_after((change,)), 0)

    def _steps(self, blocks: np.ndarray) -> np.ndarray:
        """Return what each place adds to the allocated bytes of some blocks."""
        steps = np.zeros(self._count, np.int64)
        np.add.at(steps, self._begin[blocks], self._size[blocks])
        np.subtract.at(steps, self._end[blocks], self._size[blocks])
        return steps

    def _level(self, changes: Iterable[Change]) -> np.ndarray:
        steps = self._recorded.copy()
        is_open, ends = np.ones(len(self._begin), bool), np.full(len(self._begin), -1)
        for change in changes:
            size = self._size[change.blocks] if change.size is None else change.size
            chosen = is_open[change.blocks]
            if change.group is not None:
                chosen &= ~np.isin(change.group, change.group[~chosen])
            np.add.at(steps, change.begin[chosen], size[chosen])
            np.subtract.at(steps, change.end[chosen], size[chosen])
            is_open[change.blocks[chosen]] = False
            if change.group is None:
                self._change_again(steps, ends, change, chosen)
        changed = np.flatnonzero(~is_open)
        np.subtract.at(steps, self._begin[changed], self._size[changed])
        np.add.at(steps, self._end[changed], self._size[changed])
        return np.cumsum(steps, out=steps)

    def _change_again(
        self,
        steps: np.ndarray,
        ends: np.ndarray,
        change: Change,
        is_first: np.ndarray,
    ) -> None:
        """Free blocks that earlier changes only free earlier still earlier, or make them smaller.

        Args:
            steps: What each place adds to the level, which is changed.
            ends: The places of frees of the blocks that changes so far only free earlier, which is
                changed; -1 for other blocks, and for those that are smaller now.
            change: The change.
            is_first: Whether it is the first of each of its blocks.
        """
        blocks, end, size = change.blocks, change.end, self._size[change.blocks]
        keeps_begin = change.begin == self._begin[blocks]
        before = ends[blocks]
        if change.size is None:
            only_end = keeps_begin & (end <= self._end[blocks])
            ends[blocks[is_first & only_end]] = end[is_first & only_end]
            again = only_end & ~is_first & (end < before)
            np.add.at(steps, before[again], size[again])
            np.subtract.at(steps, end[again], size[again])
            ends[blocks[again]] = end[again]
        else:
            again = keeps_begin & (end == self._end[blocks]) & ~is_first & (before >= 0)
            less = (size - change.size)[again]
            np.subtract.at(steps, change.begin[again], less)
            np.add.at(steps, before[again], less)
            ends[blocks[again]] = -1
