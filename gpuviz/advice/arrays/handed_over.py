"""Arrays that one thread makes and another one uses, as through a queue."""

import numpy as np

from gpuviz.data.columns import distinct

# Fewer arrays of a line are no queue.
_LEAST_HANDED = 6
# One that is used, one that waits for that, and one that is made.
_AT_ONCE = 3


def handed_over(
    is_other_thread: np.ndarray,
    site: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    needed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return which blocks threads hand over, and where the first thread can allocate each.

    It makes an array while another one waits for the second thread, which uses a third: so a queue
    of one array keeps both at work. If less than half of all arrays are ever there at once, there
    is such a limit already, and the thread makes them when it should.

    Args:
        is_other_thread: Whether another thread needs each block than the one that allocates it.
        site: The line that makes each block.
        begin: The place of each allocation.
        end: The place of each free.
        needed: The place before the first use that needs each block.
    """
    found, places = np.zeros(len(site), bool), needed.copy()
    for each in distinct(site[is_other_thread]).tolist():
        blocks = np.flatnonzero(is_other_thread & (site == each))
        count = len(blocks)
        if count < _LEAST_HANDED:
            continue
        found[blocks] = True
        blocks = blocks[np.argsort(begin[blocks], kind="stable")]
        alive = np.arange(1, count + 1) - np.searchsorted(np.sort(end[blocks]), begin[blocks])
        earliest = begin[blocks]
        if 2 * alive.max() >= count:
            turns = np.sort(needed[blocks])[: count - _AT_ONCE + 1]
            earliest = np.maximum(earliest, np.append(earliest[: _AT_ONCE - 1], turns))
        places[blocks] = np.minimum(needed[blocks], earliest)
    return found, places
