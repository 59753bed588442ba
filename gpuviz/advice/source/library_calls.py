"""Calls of library functions, as parts of the program's lines."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from gpuviz.analysis.launches import stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData

Part = TypeVar("Part")

# Methods of CuPy's sparse matrices that other operations call to get another format first.
_CONVERTS = re.compile(r"\.(to(csr|csc|coo|dia))$")
_SPARSE_OF_CUPY = re.compile(r"[/\\]cupyx[/\\]scipy[/\\]sparse[/\\]")
# Functions of PyTorch and of decorators that call what the program means.
_OF_MODULES = ("_wrapped_call_impl", "_call_impl")
_WRAPPERS = (*_OF_MODULES, "decorate_context", "wrapper")
# Of the launches of a part: those that may compute other values, as in its first rounds.
_MOST_OTHERS = 0.05
_THIRD = 2
_NEVER = 2**62


@dataclass(slots=True)
class _Rounds:
    """What a part of a program launches.

    Attributes:
        names: How often it launches each function, by its id of ``strings``.
        number: How often it computes a value, typically.
        third: When it computes any value for the third time, in ns.
    """

    names: Counter[int] = field(default_factory=Counter)
    number: int = 0
    third: int = _NEVER

    def add(self, other: "_Rounds") -> None:
        """Add what it launches elsewhere."""
        self.names.update(other.names)
        self.number = max(self.number, other.number)
        self.third = min(self.third, other.third)

    def may_include(self, others: Counter[int]) -> bool:
        """Return whether other launches are a few rounds of the same functions, or none."""
        most = max(others.values(), default=0)
        return others.keys() <= self.names.keys() and most <= _MOST_OTHERS * self.number


@dataclass(frozen=True, eq=False, slots=True)
class EqualWork:
    """Work that computes the same values several times.

    Attributes:
        stacks: For each work, its call stack, an id of ``stacks``.
        value: For each, a number that is equal for the same values.
        time: For each, when it is launched, in ns.
        names: For each, its name, an id of ``strings``.
    """

    stacks: np.ndarray
    value: np.ndarray
    time: np.ndarray
    names: np.ndarray

    def rounds(self, rows: np.ndarray) -> _Rounds:
        """Return the rounds of some of the work."""
        rows = rows[np.lexsort((self.time[rows], self.value[rows]))]
        third = rows[_THIRD:][self.value[rows[_THIRD:]] == self.value[rows[:-_THIRD]]]
        return _Rounds(
            Counter(self.names[rows].tolist()),
            int(np.median(np.unique(self.value[rows], return_counts=True)[1])),
            int(self.time[third].min(initial=_NEVER)),
        )


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The calls of a function of a library on a line of the program.

    Attributes:
        line: The line.
        file: The file of the function.
        name: Its qualified name.
        wrapped: The qualified name of the function that it calls if it only wraps others; empty if
            unknown.
    """

    line: Frame
    file: str
    name: str
    wrapped: str = field(default="", compare=False)

    @property
    def function(self) -> str:
        """The function's name."""
        return _short(self.name)

    @property
    def subject(self) -> str:
        """What the calls are of, to begin a title."""
        if self.function not in _WRAPPERS:
            return f"`{self.function}`"
        if not self.wrapped:
            return "The module" if self.function in _OF_MODULES else "A call"
        # All modules have the same method.
        name = self.wrapped if self.wrapped.endswith(".forward") else _short(self.wrapped)
        return f"`{name}`"

    @property
    def is_conversion(self) -> bool:
        """Whether the function converts a sparse matrix to another format."""
        return bool(_CONVERTS.search(self.name) and _SPARSE_OF_CUPY.search(self.file))


def unchanged_calls(
    recording: RecordingData, same: EqualWork, others: np.ndarray
) -> Mapping[int, LibraryCall]:
    """Return the calls of library functions that cause nothing but some work, by call stack.

    They are what a line itself calls, and conversions of sparse matrices within that, which the
    program can make before: it then passes the matrix in the format that the function needs.

    Args:
        recording: The recording.
        same: The work.
        others: Calls that launch anything else, rows of ``api_calls``.
    """

    def called(stack: int) -> list[LibraryCall]:
        return library_calls(recording.call_stacks.frames(stack))

    busy = busy_parts(recording, called, same, others)
    found = {}
    for stack in np.unique(same.stacks).tolist():
        chosen = next((each for each in called(stack) if each not in busy), None)
        if chosen is not None:
            found[stack] = chosen
    return found


def busy_parts(
    recording: RecordingData,
    of_stack: Callable[[int], Iterable[Part]],
    same: EqualWork,
    others: np.ndarray,
) -> set[Part]:
    """Return the parts of a program, such as its lines, that do other than some work.

    At most 5 % of what they launch may be other work: in their first two rounds anything, later
    only rounds that launch the same functions.

    Args:
        recording: The recording.
        of_stack: Returns the parts on a call stack.
        same: The work.
        others: Calls that launch anything else, rows of ``api_calls``.
    """
    known = defaultdict[Part, _Rounds](_Rounds)
    for rows in _by_value(same.stacks):
        rounds = same.rounds(rows)
        for part in set(of_stack(int(same.stacks[rows[0]]))):
            known[part].add(rounds)
    later = defaultdict[Part, Counter[int]](Counter)
    count = Counter[Part]()
    time, names = plain(recording.tables["api_calls"]["time"])[others], launched(recording, others)
    stacks = stacks_of(recording.tables, others)
    for rows in _by_value(stacks):
        for part in set(of_stack(int(stacks[rows[0]]))):
            late = rows[time[rows] >= known[part].third] if part in known else rows
            later[part].update(names[late].tolist())
            count[part] += len(rows)
    return {
        part
        for part, each in count.items()
        if each > _MOST_OTHERS * known[part].names.total()
        or not known[part].may_include(later[part])
    }


def launched(recording: RecordingData, calls: np.ndarray) -> np.ndarray:
    """Return the names of what some calls launch, ids of ``strings``; -1 if unknown."""
    activities = recording.tables["activities"]
    correlation = plain(recording.tables["api_calls"]["correlation"])[calls]
    rows = first_rows(plain(activities["correlation"]), correlation)
    return np.where(rows >= 0, np.append(plain(activities["name"]).astype(np.int64), -1)[rows], -1)


def _by_value(values: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each value."""
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1)


def library_calls(frames: list[Frame]) -> list[LibraryCall]:
    """Return what the program's innermost line calls, and the conversions within that.

    Args:
        frames: The frames of a call stack, innermost first.

    Returns:
        The calls, outermost first.
    """
    own = next((place for place, each in enumerate(frames) if not each.is_installed), 0)
    inner = frames[:own][::-1]
    wrapped = next((each.name for each in inner if _short(each.name) not in _WRAPPERS), "")
    called = [LibraryCall(frames[own], each.filename, each.name, wrapped) for each in inner]
    return [*called[:1], *(each for each in called[1:] if each.is_conversion)]


def _short(name: str) -> str:
    """Return the last part of a qualified name."""
    return name.rpartition(".")[2]
