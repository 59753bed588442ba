"""What a program calls the arrays in its blocks of memory."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.analysis.state import ALLOCATED, state_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from gpuviz.notebook.holders import Holders
    from gpuviz.recording import Recording

_MOST_FRAMES = 8
_MOST_BLOCKS = 5000
MOST_NAMES = 6
_PACKAGE = str(Path(__file__).parent)


def names_by_stack(recording: "Recording", device: int, thread: int) -> dict[int, tuple[str, ...]]:
    """Return the names of arrays in the largest live blocks, by the stack that allocated them.

    Names are those of the program's main module and of the functions that a thread is in.

    Args:
        recording: Whose blocks at its end are looked for.
        device: Ordinal.
        thread: Python's identifier of a thread.
    """
    import numpy as np

    holders = list(_holders(thread))
    blocks = state_at(recording).blocks()
    rows = np.flatnonzero((blocks["device"] == device) & (blocks["state"] == ALLOCATED))
    rows = rows[np.argsort(-blocks["size"][rows].astype(np.int64), kind="stable")][:_MOST_BLOCKS]
    names: dict[int, tuple[str, ...]] = {}
    columns = (blocks[column][rows].tolist() for column in ("stack", "address", "size"))
    for stack, address, size in zip(*columns, strict=True):
        found = tuple(
            f"{name}{where}" for where, each in holders for name in each.of(address, size)
        )
        names[stack] = (names.get(stack, ()) + found)[:MOST_NAMES]
    return {stack: found for stack, found in names.items() if found}


def _holders(thread: int) -> "Iterator[tuple[str, Holders]]":
    from gpuviz.notebook.holders import Holders

    main = vars(sys.modules["__main__"])
    yield "", Holders(main)
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 - the only way
    frames = 0
    while frame is not None and frames < _MOST_FRAMES:
        code = frame.f_code
        if frame.f_locals is not frame.f_globals and not code.co_filename.startswith(_PACKAGE):
            yield f" of {code.co_name}()", Holders(frame.f_locals)
            frames += 1
        frame = frame.f_back
