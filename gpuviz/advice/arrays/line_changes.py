"""Changes of the lifetimes of all blocks of a line."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.data.columns import distinct


def changes_by_line(
    device: DeviceBlocks,
    idle: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
) -> Iterator[tuple[np.ndarray, Change]]:
    """Yield what each line changes if all of its blocks get other lifetimes.

    Args:
        device: The blocks.
        idle: Whether each block is at the peak without need.
        begin: The new place of each block's allocation.
        end: The new place of its free.

    Yields:
        The line's blocks that are at the peak without need, and the change.
    """
    is_changed = (begin != device.begin) | (end != device.end)
    for site in distinct(device.site[idle]).tolist():
        of_site = np.flatnonzero((device.site == site) & is_changed)
        later = device.begin.copy()
        later[of_site] = begin[of_site]
        ends = device.replacements.ends_with(later)
        ends[of_site] = np.where(end[of_site] < device.end[of_site], end[of_site], ends[of_site])
        changed = np.flatnonzero((later != device.begin) | (ends != device.end))
        change = Change(changed, later[changed], ends[changed])
        yield np.flatnonzero(idle & (device.site == site)), change
