"""Places of calls in the functions of the program: which follow each other without a loop."""

import re
from typing import NamedTuple

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData

# How two calls lie to each other: neither of the others, on a later line of the function that both
# were made in or below, in one statement of it, and both on the same line without a call between.
_APART, _LATER, _STATEMENT, _SAME_LINE = range(4)

# Brackets in a line of code, outside of its strings and comments.
_BRACKETS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|#.*|(?P<bracket>[()\[\]{}])""")
# An operator of Python or a call in the text of a line.
_OPERATION = re.compile(r"[-+*/%&|^<>~(]")
# Lines that cannot be within brackets.
_BLOCK = re.compile(r"\s*(def|class|return|while|with|import|from|try:|else:)\b")


class _Step(NamedTuple):
    """A call in a call stack: numbers of its function and its statement, and its line."""

    function: int
    statement: int
    line: int


class CallPaths:
    """The calls of a program's functions that led to some CUDA calls.

    Args:
        recording: The recording.
        calls: Rows of ``api_calls``.
    """

    def __init__(self, recording: RecordingData, calls: np.ndarray) -> None:
        self._recording, self._calls = recording, calls
        self._stacks = stacks_of(recording.tables, calls)
        self._statements = _Statements(recording)
        self._paths: dict[int, tuple[_Step, ...]] = {}
        self._functions: dict[tuple[str, ...], int] = {}

    def lines(self) -> np.ndarray:
        """Return a number for each call, equal for those of the same line of a function."""
        distinct, place = np.unique(self._stacks, return_inverse=True)
        numbers: dict[tuple[_Step, ...], int] = {}
        steps = (self._path(stack)[-1:] for stack in distinct.tolist())
        found = np.array([numbers.setdefault(each, len(numbers)) for each in steps], np.int64)
        of_call: np.ndarray = found[place]
        return of_call

    def lie(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return of which pairs of calls one line makes both itself, and which follow each other.

        Those of other lines follow each other in one execution of the innermost function that both
        are made in, or below: on a later line, or both in one execution of one statement there.

        Args:
            source: Indices of the calls.
            target: Indices of the calls that use what these make.
        """
        relation, level = self._relations(source, target)
        follows: np.ndarray = relation == _LATER
        in_statement = (relation == _STATEMENT) | (relation == _SAME_LINE)
        for each in np.unique(level[in_statement]).tolist():
            rows = np.flatnonzero(in_statement & (level == each))
            run = self._runs(each)
            follows[rows] = (run[source[rows]] >= 0) & (run[source[rows]] == run[target[rows]])
        return relation == _SAME_LINE, follows

    def _relations(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how the calls of each pair lie to each other, and in which step of their paths."""
        before, after = self._stacks[source], self._stacks[target]
        rows, first = numbered(before, after)
        pairs = zip(before[first].tolist(), after[first].tolist(), strict=True)
        found = [_relation(self._path(one), self._path(other)) for one, other in pairs]
        relation, level = np.array(found, np.int64).reshape(-1, 2)[rows].T
        return relation, level

    def _path(self, stack: int) -> tuple[_Step, ...]:
        """Return the program's own frames of a call stack, outermost first."""
        if stack not in self._paths:
            steps = []
            for frame in reversed(self._recording.call_stacks.user_frames(stack)):
                key = (frame.filename, str(frame.cell), frame.name)
                number = self._functions.setdefault(key, len(self._functions))
                steps.append(_Step(number, self._statements.first_line(frame), frame.line))
            self._paths[stack] = tuple(steps)
        return self._paths[stack]

    def _runs(self, level: int) -> np.ndarray:
        """Return numbers of the executions of a statement that each call is part of.

        Of the statement in one step of the paths; -1 if it may be executed several times in a row,
        since a line below it makes more calls than its text has operators and calls.
        """
        calls = self._recording.tables["api_calls"]
        time, thread, stack = (plain(calls[name]) for name in ("time", "thread", "stack"))
        order = np.lexsort((time, thread))
        order = order[stack[order] != 0]
        of_row, first = numbered(stack[order])
        numbers: dict[object, int] = {}
        keys = (self._prefix(each, level) for each in stack[order][first].tolist())
        place = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[of_row]
        begins = np.ones(len(order), bool)
        begins[1:] = (place[1:] != place[:-1]) | (thread[order][1:] != thread[order][:-1])
        run = np.full(len(stack), -1)
        run[order] = np.cumsum(begins) - 1
        runs = run[self._calls]
        # Operators of a line may have call stacks of their own, with frames of a library.
        numbers.clear()
        distinct, place = np.unique(self._stacks, return_inverse=True)
        paths = [numbers.setdefault(self._path(each), len(numbers)) for each in distinct.tolist()]
        _, first, of_call = np.unique(
            np.array(paths, np.int64)[place], return_index=True, return_inverse=True
        )
        most = operations_of(self._recording, self._stacks[first])
        pairs, count = np.unique(np.stack([runs, of_call]), axis=1, return_counts=True)
        repeated = np.unique(pairs[0, count > most[pairs[1]]])
        found: np.ndarray = np.where(np.isin(runs, repeated), -1, runs)
        return found

    def _prefix(self, stack: int, level: int) -> object:
        """Return what call stacks of one statement at a step of their paths have in common."""
        path = self._path(stack)
        if len(path) <= level:
            return stack
        return path[:level], path[level].function, path[level].statement


def operations_of(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return how many operators and calls the text of the line of each call stack has."""
    call_site = recording.call_stacks.call_site
    sources = (call_site(stack)[1] for stack in stacks.tolist())
    return np.array([len(_OPERATION.findall(source)) for source in sources], np.int64)


def _relation(source: tuple[_Step, ...], target: tuple[_Step, ...]) -> tuple[int, int]:
    """Return how two calls lie to each other, and in which step of their paths they part."""
    for level, (one, other) in enumerate(zip(source, target, strict=False)):
        if one.function != other.function:
            return (_STATEMENT if level else _APART), level - 1
        if one.line < other.line:
            return _LATER, level
        if one.line > other.line:
            return (_STATEMENT if one.statement == other.statement else _APART), level
    if not source or not target:
        return _APART, 0
    equal = len(source) == len(target)
    return (_SAME_LINE if equal else _STATEMENT), min(len(source), len(target)) - 1


class _Statements:
    """The statements of the lines around which a recording has the program's text."""

    def __init__(self, recording: RecordingData) -> None:
        names = ("filename", "cell", "name", "line", "context", "context_line")
        columns = [recording.tables["frames"][name].to_pylist() for name in names]
        self._texts = {
            (filename, cell, name, line): (context, first)
            for filename, cell, name, line, context, first in zip(*columns, strict=True)
            if context
        }

    def first_line(self, frame: Frame) -> int:
        """Return the first line of the statement that a frame's line is part of, if it is known."""
        key = (frame.filename, frame.cell, frame.name, frame.line)
        context, first = self._texts.get(key, ("", frame.line))
        found, unclosed, most = frame.line, 0, 0
        before = context.split("\n")[: frame.line - first]
        for line, text in zip(range(frame.line - 1, 0, -1), reversed(before), strict=False):
            brackets = [each["bracket"] for each in _BRACKETS.finditer(text)]
            unclosed += sum(1 if each in "([{" else -1 for each in brackets if each)
            if unclosed > most:
                found, most = line, unclosed
            if _BLOCK.match(text):
                break
        return found
