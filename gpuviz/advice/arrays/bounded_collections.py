"""Arrays that a collection of bounded size keeps, such as a window or a cache."""

import numpy as np

from gpuviz.data.columns import distinct

# Fewer arrays of a line may be variables that a loop passes on.
_LEAST_KEPT = 3
_LEAST_REPLACED = 4
# A single one may be a reference that the program compares all others with.
_LEAST_USED_AT_LAST = 2


def may_be_needed(
    site: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    made: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
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


def used_in_any_order(
    site: np.ndarray,
    begin: np.ndarray,
    made: np.ndarray,
    run: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Return which blocks are of a line that makes entries of a cache.

    The program cannot tell which of them it needs again: two older ones are used after the last use
    of one, so that it is no queue; and some are used for longer than the one before them, so that
    it is no stack.

    Args:
        site: The line that makes each block.
        begin: The place of each allocation.
        made: When each was allocated.
        run: When the run of the line ended that made it.
        used: When each was last used; -1 if it was not.
    """
    order = np.lexsort((begin, site))
    sites, run, last = site[order], run[order], used[order]
    is_no_stack = (made[order][1:] < last[:-1]) & (last[:-1] < last[1:]) & (run[1:] != run[:-1])
    chosen = np.isin(sites, distinct(sites[1:][is_no_stack & (sites[1:] == sites[:-1])]))
    sites, run = sites[chosen], run[chosen]
    # Moments of a site are later than those of the sites before it.
    times, last = np.unique(last[chosen], return_inverse=True)
    last = last + sites * len(times)
    longest = np.append(-1, np.maximum.accumulate(last))
    second = np.append(-1, np.maximum.accumulate(np.minimum(longest[:-1], last)))
    begins = np.ones(len(sites), bool)
    begins[1:] = (sites[1:] != sites[:-1]) | (run[1:] != run[:-1])
    before = np.maximum.accumulate(np.where(begins, np.arange(len(sites)), 0))
    return np.isin(site, distinct(sites[second[before] > last]))
