"""Arrays that a collection of bounded size keeps, such as a window or a cache."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.data.columns import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Fewer arrays of a line may be variables that a loop passes on.
_LEAST_KEPT = 3
_LEAST_REPLACED = 4
# A single one may be a reference that the program compares all others with.
_LEAST_USED_AT_LAST = 2


def may_be_needed(
    site: "NDArray[Any]",
    begin: "NDArray[Any]",
    end: "NDArray[Any]",
    made: "NDArray[Any]",
    used: "NDArray[Any]",
) -> "NDArray[Any]":
    """Return which blocks a collection keeps whose program cannot tell which it needs again.

    From some time on, the line that makes the blocks has as many others each time, and at least two
    blocks are used when as many newer ones fill the collection. If it drops the oldest one each
    time, these have had their last turn; another block could have been used like them.

    Args:
        site: The line that makes each block.
        begin: The place of each allocation.
        end: The place of each free.
        made: When each was allocated.
        used: When the line began that last used each block.
    """
    needed = np.zeros(len(site), bool)
    order = np.lexsort((begin, site))
    starts = np.searchsorted(site[order], distinct(site))
    for blocks in np.split(order, starts[1:]):
        count = len(blocks)
        if count < _LEAST_KEPT + _LEAST_REPLACED:
            continue
        begins, ends = begin[blocks], end[blocks]
        kept = np.arange(count) - np.searchsorted(np.sort(ends), begins)
        most = kept.max()
        rolling = kept[np.argmax(kept) :]
        if most < _LEAST_KEPT or len(rolling) < _LEAST_REPLACED or (rolling < most).any():
            continue
        newer = np.searchsorted(made[blocks], used[blocks]) - np.arange(count) - 1
        is_last = newer >= most - 1
        if np.count_nonzero(is_last) >= _LEAST_USED_AT_LAST:
            needed[blocks] = ~is_last if (np.diff(ends) > 0).all() else True
    return needed
