"""Arrays that a line frees after it has made the ones that replace them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.columns import distinct

if TYPE_CHECKING:
    from gpuviz.advice.arrays.device_blocks import DeviceBlocks


@dataclass(frozen=True, eq=False, slots=True)
class Replacements:
    """Blocks of a device that the run of a line frees after it has allocated others.

    Attributes:
        old: The blocks that are freed.
        new: For each, the block that the run allocated last before that.
        begin: The place of each allocation of the device's blocks.
        end: The place of each free.
    """

    old: np.ndarray
    new: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def ends_with(self, begin: np.ndarray) -> np.ndarray:
        """Return the places of frees if the device's blocks are allocated at other places.

        The line that assigns a new array to a variable frees the one that the variable had.
        """
        end = self.end.copy()
        moved = begin[self.new] > self.begin[self.new]
        later = np.maximum(end[self.old], begin[self.new] + 1)
        end[self.old[moved]] = later[moved]
        return end


def replacements(device: "DeviceBlocks") -> Replacements:
    """Return which blocks of a device the lines replace that make others."""
    allocated, number = device.made_until, device.number
    freed = np.flatnonzero(device.is_freed)
    runs = device.statements.ends_of_events(device.used.blocks.free[number[freed]])
    order = np.lexsort((device.begin, allocated))
    ends, count = distinct(allocated), device.places.count
    keys = np.searchsorted(ends, allocated[order]) * count + device.begin[order]
    run = np.searchsorted(ends, runs)
    by = np.searchsorted(keys, run * count + device.end[freed]) - 1
    same = (run < len(ends)) & (by >= 0) & (allocated[order[by]] == runs)
    same &= order[by] != freed
    return Replacements(freed[same], order[by][same], device.begin, device.end)
