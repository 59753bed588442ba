"""Which calls a line of the program makes itself."""

import re

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.data.recording_data import RecordingData

# Functions that do what their caller asks for: those of CuPy that create arrays, such as `zeros`,
# `asnumpy`, the reductions and `clip`, which are methods as well, `where`, `tile` and `repeat`; and
# those of PyTorch that synchronize. By file and name.
_PASSES_ON = re.compile(
    r"torch[/\\]cuda[/\\](__init__|streams)\.py:(\w+\.)?synchronize$"
    r"|cupy[/\\](_creation[/\\]\w+\.py|__init__\.py"
    r"|_math[/\\](sumprod\.py:(sum|prod)|misc\.py:clip)$|_statistics[/\\]meanvar\.py:(mean|var|std)$"
    r"|_statistics[/\\]order\.py:a?(max|min)$|_logic[/\\]truth\.py:(all|any)$"
    r"|_manipulation[/\\]tiling\.py:(tile|repeat)$"
    r"|_sorting[/\\](search\.py:(arg(max|min)|where)|count\.py:count_nonzero)$)"
)
# Functions of CuPy that return new arrays of random numbers; they keep arrays of their own, too.
_RANDOM = re.compile(r"cupy[/\\]random[/\\]\w+\.py")


def is_own(recording: RecordingData, stacks: np.ndarray, *, random: bool = False) -> np.ndarray:
    """Return whether the program itself makes the call with each stack, and so can change it.

    What a function of a library does is not the program's to change, nor is what has no call stack.

    Args:
        recording: The recording.
        stacks: Ids of ``stacks``.
        random: Whether to include what CuPy's functions for random numbers do for their callers.
    """
    numbers, first = numbered(stacks)
    known = stacks[first].tolist()
    own = np.array([_is_own(recording, stack, random=random) for stack in known], bool)
    found: np.ndarray = own[numbers]
    return found


def _is_own(recording: RecordingData, stack: int, *, random: bool) -> bool:
    for frame in recording.call_stacks.frames(stack):
        if not frame.is_installed:
            return True
        place = f"{frame.filename}:{frame.name}"
        if not _PASSES_ON.search(place) and not (random and _RANDOM.search(place)):
            return False
    return False
