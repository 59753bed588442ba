"""The pinned memory of the host that copies use."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows

UNKNOWN = -1
_NO_END = 2**63 - 1


def pinned_places(schedule: Schedule, copies: np.ndarray) -> np.ndarray:
    """Return a number for the pinned memory that each of some copies uses; `UNKNOWN` if unknown.

    Copies whose memory overlaps have the same number, so that the slots of one block have different
    ones. Pageable memory is unknown, and so is pinned memory that is not in ``host_memory_events``:
    that of other libraries than CuPy, and what was allocated before the recording began. Memory of
    a copy without a number is never that of a copy with one.
    """
    tables = schedule.recording.tables
    pinned = np.unique(plain(tables["host_memory_events"]["address"])).astype(np.int64)
    places = np.full(len(copies), UNKNOWN)
    table = tables["launch_blocks"]
    blocks = plain(table["block"]).astype(np.int64)
    of_host = np.flatnonzero(np.isin(blocks, pinned))
    row = first_rows(plain(table["correlation"])[of_host], schedule.launch[copies])
    known = np.flatnonzero(row >= 0)
    if not len(known):
        return places
    row = of_host[row[known]]
    begin, size = (plain(table[name])[row].astype(np.int64) for name in ("address", "bytes"))
    # Without a size, all of the block.
    last = np.append(pinned, _NO_END)[np.searchsorted(pinned, blocks[row], side="right")]
    end = np.where(size > 0, begin + size, last)
    order = np.argsort(begin, kind="stable")
    is_new = begin[order[1:]] >= np.maximum.accumulate(end[order])[:-1]
    places[known[order]] = np.cumsum(np.append(False, is_new))
    return places
