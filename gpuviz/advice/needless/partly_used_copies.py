"""Copies to the host of whole arrays, of which the same line takes only a part."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.source.own_lines import is_own
from gpuviz.advice.source.parsed_text import name_called
from gpuviz.advice.source.taken_parts import most_taken, tree_of_line
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.tables import DICTIONARIES

_TO_HOST = DICTIONARIES["activities", "copy_kind"].index("device_to_host")
# Less is rather a value than an array.
_LEAST_BYTES = 64 << 10
_MOST_SHARE = 0.5
# Functions with which a line may copy another array as a whole.
_MAY_COPY = re.compile(
    r"(?:array|asarray|asnumpy|copy_to_host|cpu|device_get|dumps?|format|get|numpy|print|repr|save"
    r"|str|to|tobytes|tofile|tolist)$"
)


@dataclass(frozen=True, eq=False, slots=True)
class PartlyUsed:
    """Copies of a line that takes a part of each.

    Attributes:
        work: The activities that copy, as a `Schedule` numbers them.
        stack: One of the line's call stacks.
        share: The share of each that the line takes at most.
        taken: The expression that takes it.
        instead: The expression that takes it before the copy.
    """

    work: np.ndarray
    stack: int
    share: float
    taken: str
    instead: str


@Once
def partly_used_copies(schedule: Schedule) -> tuple[PartlyUsed, ...]:
    """Return the lines that copy arrays of 64 KiB or more, and use at most half of each.

    The line itself calls CuPy's ``get`` or ``asnumpy``, or PyTorch's ``cpu``, and takes a part of
    what that returns by a subscript of constants, as in ``x.get()[::32, ::32]``. Nothing else can
    use the rest, which has no name. All its copies of whole arrays are such: another one may only
    be of a part, as in ``x[::32].get() if small else x.get()[::32]``. Then those are meant that
    copy all of a block which the line has not made.

    They are computed once for a schedule.
    """
    return tuple(_by_line(schedule))


def _by_line(schedule: Schedule) -> Iterator[PartlyUsed]:
    recording = schedule.recording
    activities = recording.tables["activities"]
    kinds = codes(activities["copy_kind"], DICTIONARIES["activities", "copy_kind"])[schedule.rows]
    sizes = plain(activities["bytes"])[schedule.rows]
    chosen = (schedule.kind == COPY) & (kinds == _TO_HOST) & (schedule.call >= 0)
    work = np.flatnonzero(chosen & (sizes >= _LEAST_BYTES))
    stacks = stacks_of(recording.tables, schedule.call[work])
    lines = line_numbers(recording, stacks)
    for line in np.unique(lines).tolist():
        of_line = np.flatnonzero(lines == line)
        stack = int(stacks[of_line[0]])
        tree = tree_of_line(recording, stack)
        found = None if tree is None else _taken_of(tree)
        if found is None or not is_own(recording, stacks[of_line]).all():
            continue
        copies = work[of_line]
        if not found.is_all:
            copies = copies[_are_of_whole_blocks(schedule, copies)]
        if len(copies):
            yield PartlyUsed(copies, stack, found.share, found.taken, found.instead)


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a statement takes of the arrays that it copies.

    Attributes:
        share: Of each, at most.
        is_all: Whether it copies nothing else.
        taken: The expression that takes the part.
        instead: The expression that takes it before the copy.
    """

    share: float
    is_all: bool
    taken: str
    instead: str


def _taken_of(tree: ast.Module) -> _Taken | None:
    """Return what a statement takes of the arrays that it copies; None if it may use all."""
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    copying = [each for each in calls if _copied(each) is not None]
    taken = {
        id(call): each
        for each in ast.walk(tree)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
        if (call := _returned(each.value)) is not None
    }
    parts = [taken[id(each)] for each in copying if id(each) in taken]
    others = [each for each in copying if id(each) not in taken]
    shares = [most_taken(each.slice) for each in parts]
    if not parts or not all(map(_is_small, (*shares, *map(_share_copied, others)))):
        return None
    known = {id(each) for call in copying for each in (call, _converting(calls, call))}
    further = [each for each in calls if id(each) not in known]
    if any(_may_copy(each, parts) for each in further) or _are_nested(copying):
        return None
    most = max(each for each in shares if each is not None)
    first = parts[0]
    return _Taken(most, not others, ast.unparse(first), ast.unparse(_taken_before(first)))


def _copied(call: ast.expr) -> ast.expr | None:
    """Return the array that a call copies to the host as a whole; None of other calls."""
    match call:
        case ast.Call(func=ast.Attribute(value=array, attr="get"), args=[], keywords=options) if (
            _are_harmless(options)
        ):
            return array
        case ast.Call(func=ast.Attribute(value=array, attr="cpu"), args=[], keywords=[]):
            return array
        case ast.Call(func=ast.Attribute() | ast.Name(), args=[array], keywords=options) if (
            name_called(call) == "asnumpy" and _are_harmless(options)
        ):
            return array
    return None


def _are_harmless(options: list[ast.keyword]) -> bool:
    """Return whether options of a copy let it return a new array."""
    return all(each.arg in {"stream", "order", "blocking"} for each in options)


def _returned(value: ast.expr) -> ast.expr | None:
    """Return the call that copies what an expression is: itself, or that before ``.numpy()``."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="numpy"), args=[], keywords=[]):
            value = inner
    return None if _copied(value) is None else value


def _converting(calls: list[ast.Call], call: ast.Call) -> ast.Call:
    """Return the call of ``.numpy()`` of what a call returns, else that itself."""
    return next((each for each in calls if _returned(each) is call), call)


def _share_copied(call: ast.expr) -> float | None:
    """Return which share of an array a call copies at most, if it copies a part; else None."""
    array = _copied(call)
    return most_taken(array.slice) if isinstance(array, ast.Subscript) else None


def _is_small(share: float | None) -> bool:
    return share is not None and share <= _MOST_SHARE


def _may_copy(call: ast.Call, parts: list[ast.Subscript]) -> bool:
    """Return whether a call may copy another array than those of which a statement takes parts."""
    if not _MAY_COPY.match(name_called(call)):
        return False
    within = [each for argument in call.args for each in ast.walk(argument)]
    return len(call.args) != 1 or not any(each in parts for each in within)


def _are_nested(copying: list[ast.Call]) -> bool:
    """Return whether a call that copies is within another, as the ``get`` of a queue may be."""
    inner = [each for call in copying for each in ast.walk(call) if each is not call]
    return any(each in copying for each in inner)


def _taken_before(part: ast.Subscript) -> ast.expr:
    """Return the expression that takes a part before the copy."""

    def replaced(value: ast.expr) -> ast.expr:
        array = _copied(value)
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if array is None:
                return ast.Call(ast.Attribute(replaced(inner), name, ast.Load()), [], [])
            case ast.Call(func=function, args=[_], keywords=options) if array is not None:
                return ast.Call(function, [ast.Subscript(array, part.slice, ast.Load())], options)
            case ast.Call(func=ast.Attribute(attr=name), keywords=options) if array is not None:
                taken = ast.Subscript(array, part.slice, ast.Load())
                return ast.Call(ast.Attribute(taken, name, ast.Load()), [], options)
        return value

    return replaced(part.value)


def _are_of_whole_blocks(schedule: Schedule, copies: np.ndarray) -> np.ndarray:
    """Return which copies are of all of a block that another line allocated."""
    used, tables = schedule.touches, schedule.recording.tables
    whole = np.zeros(len(copies), bool)
    if used is None:
        return whole
    calls = schedule.call[copies]
    rows = np.flatnonzero(np.isin(used.call, calls))
    _, first, count = np.unique(used.call[rows], return_index=True, return_counts=True)
    rows = rows[first[count == 1]]
    found = first_rows(used.call[rows] + 1, calls + 1)
    copies, calls, rows = copies[found >= 0], calls[found >= 0], rows[found[found >= 0]]
    blocks = used.block[rows]
    made = used.blocks.alloc[blocks]
    makers = np.where(made >= 0, np.append(plain(tables["memory_events"]["stack"]), 0)[made], 0)
    stacks = np.concatenate([stacks_of(tables, calls), makers])
    own, other = np.split(line_numbers(schedule.recording, stacks), 2)
    sizes = plain(tables["activities"]["bytes"])[schedule.rows[copies]]
    is_all = used.at_begin[rows] & (used.blocks.requested[blocks] == sizes) & (own != other)
    whole[found >= 0] = is_all
    return whole
