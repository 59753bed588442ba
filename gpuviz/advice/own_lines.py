"""Which calls a line of the program makes itself."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

# Functions of CuPy that do what their caller asks for: those that create arrays, such as `zeros`,
# and `asnumpy`.
_PASSES_ON = re.compile(r"cupy[/\\](_creation[/\\]\w+|__init__)\.py$")


def is_own(recording: "RecordingData", stacks: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether the program itself makes the call with each stack, and so can change it.

    What a function of a library does is not the program's to change, nor is what has no call stack.
    """
    distinct, place = np.unique(stacks, return_inverse=True)
    own = np.array([_is_own(recording, stack) for stack in distinct.tolist()], bool)
    found: NDArray[Any] = own[place]
    return found


def _is_own(recording: "RecordingData", stack: int) -> bool:
    for frame in recording.call_stacks.frames(stack):
        if not frame.is_installed:
            return True
        if not _PASSES_ON.search(frame.filename):
            return False
    return False
