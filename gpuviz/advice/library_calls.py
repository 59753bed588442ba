"""Calls of library functions, as parts of the program's lines."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.launches import stacks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuviz.data.call_stacks import Frame
    from gpuviz.data.recording_data import RecordingData

# Methods of CuPy's sparse matrices that other operations call to get another format first.
_CONVERTS = re.compile(r"\.(to(csr|csc|coo|dia))$")
_SPARSE_OF_CUPY = re.compile(r"[/\\]cupyx[/\\]scipy[/\\]sparse[/\\]")


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The calls of a function of a library on a line of the program.

    Attributes:
        line: The line.
        file: The file of the function.
        name: Its qualified name.
    """

    line: "Frame"
    file: str
    name: str

    @property
    def function(self) -> str:
        """The function's name."""
        return self.name.rpartition(".")[2]

    @property
    def is_conversion(self) -> bool:
        """Whether the function converts a sparse matrix to another format."""
        return bool(_CONVERTS.search(self.name) and _SPARSE_OF_CUPY.search(self.file))


def unchanged_calls(
    recording: "RecordingData", calls: "NDArray[Any]", others: "NDArray[Any]", most_others: float
) -> "Mapping[int, LibraryCall]":
    """Return the calls of library functions that cause nothing but some work, by call stack.

    They are what a line itself calls, and conversions of sparse matrices within that, which the
    program can make before: it then passes the matrix in the format that the function needs.

    Args:
        recording: The recording.
        calls: The calls that launch the work, rows of ``api_calls``.
        others: Calls that launch anything else.
        most_others: The share of the function's calls that may launch other work.
    """
    own, of_stack = _counted(recording, calls)
    other, _ = _counted(recording, others)
    unchanged = {each for each, count in own.items() if other[each] <= most_others * count}
    found = {}
    for stack, candidates in of_stack.items():
        chosen = next((each for each in candidates if each in unchanged), None)
        if chosen is not None:
            found[stack] = chosen
    return found


def _counted(
    recording: "RecordingData", calls: "NDArray[Any]"
) -> "tuple[Counter[LibraryCall], dict[int, list[LibraryCall]]]":
    """Return how often library calls make some calls, and the library calls on each stack."""
    stacks, counts = np.unique(stacks_of(recording.tables, calls), return_counts=True)
    of_stack = {
        stack: library_calls(recording.call_stacks.frames(stack)) for stack in stacks.tolist()
    }
    total = Counter[LibraryCall]()
    for each, count in zip(of_stack.values(), counts.tolist(), strict=True):
        total.update(dict.fromkeys(each, count))
    return total, of_stack


def library_calls(frames: "list[Frame]") -> list[LibraryCall]:
    """Return what the program's innermost line calls, and the conversions within that.

    Args:
        frames: The frames of a call stack, innermost first.

    Returns:
        The calls, outermost first.
    """
    own = next((place for place, each in enumerate(frames) if not each.is_installed), 0)
    called = [LibraryCall(frames[own], each.filename, each.name) for each in frames[:own][::-1]]
    return [*called[:1], *(each for each in called[1:] if each.is_conversion)]
