"""Events that an allocator caused by itself, among those that its program asked for."""

import numpy as np
import pyarrow as pa

from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS

# What an allocator does by itself, and what it does only if it has no other memory.
_BY_ALLOCATOR = (
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
)
_RELEASES = ("segment_free", "segment_unmap", "oom", "empty_cache")


def late_frees(events: pa.Table) -> np.ndarray:
    """Return which events of a device complete a free after a wait for other streams."""
    completed = codes(events["action"], ACTIONS) == ACTIONS.index("free_completed")
    late: np.ndarray = completed & ~_completes_at_once(events)
    return late


def depends_on_waits(events: pa.Table) -> bool:
    """Return whether frees completed after a wait that the program would not have under others.

    A request waits for all streams before it fails, and when a segment is released. The program
    goes on later then, and other memory is free at its next requests than without the wait.
    """
    actions = codes(events["action"], ACTIONS)
    released = np.flatnonzero(np.isin(actions, list(map(ACTIONS.index, _RELEASES))))
    if not len(released):
        return False
    # The wait comes before what is released, after what the program did before.
    begin = asked_end(events.slice(0, int(released[0])))
    return bool(late_frees(events)[begin:].any())


def asked_end(events: pa.Table) -> int:
    """Return the row after the last event of a device that an allocator did not cause by itself."""
    own = np.isin(codes(events["action"], ACTIONS), list(map(ACTIONS.index, _BY_ALLOCATOR)))
    return int(np.flatnonzero(~own | _completes_at_once(events)).max(initial=-1)) + 1


def _completes_at_once(events: pa.Table) -> np.ndarray:
    """Return which events of a device complete the free before them."""
    actions, addresses = codes(events["action"], ACTIONS), plain(events["address"])
    at_once: np.ndarray = actions == ACTIONS.index("free_completed")
    at_once[:1] = False
    at_once[1:] &= actions[:-1] == ACTIONS.index("free_requested")
    at_once[1:] &= addresses[1:] == addresses[:-1]
    return at_once
