"""Variable names of the arrays in blocks of memory."""

import sys

from gpuviz.analysis.initial_state import ALLOCATED
from gpuviz.analysis.state import state_at
from gpuviz.data.recording_data import RecordingData

_MOST_BLOCKS = 5000
MOST_NAMES = 6


def names_by_stack(recording: RecordingData, device: int) -> dict[int, tuple[str, ...]]:
    """Return the names of arrays in the largest live blocks, by the stack that allocated them.

    Only the program's main module is searched, not the local variables of its functions: up to
    Python 3.12, reading the locals of a frame keeps the values alive.

    Args:
        recording: The recording whose blocks at its end are named.
        device: Ordinal.
    """
    import numpy as np

    from gpuviz.ownership.array_names import ArrayNames

    arrays = ArrayNames(vars(sys.modules["__main__"]))
    blocks = state_at(recording).blocks()
    rows = np.flatnonzero((blocks["device"] == device) & (blocks["state"] == ALLOCATED))
    rows = rows[np.argsort(-blocks["size"][rows].astype(np.int64), kind="stable")][:_MOST_BLOCKS]
    names: dict[int, tuple[str, ...]] = {}
    columns = (blocks[column][rows].tolist() for column in ("stack", "address", "size"))
    for stack, address, size in zip(*columns, strict=True):
        found = arrays.of(address, size)
        if found:
            names[stack] = (names.get(stack, ()) + found)[:MOST_NAMES]
    return names
