"""Sorts of which a program uses only the first or the last element along the sorted axis."""

import ast
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.parsed_text import (
    is_ellipsis,
    is_whole,
    name_called,
    number_in,
    parsed,
    parts_of_index,
)
from gpuviz.advice.trace import KERNEL
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.schedule import Schedule
    from gpuviz.data.call_stacks import Frame

_SORTS = re.compile(r"sort", re.IGNORECASE)
# Functions that sort; the kernels of a line with others may be of those.
_MAY_SORT = re.compile(
    r"sort|unique|median|quantile|percentile|partition|topk|rank|^isin$|^mode$|randperm|permutation|"
    r"digitize|bucketize|histogram|index_put",
    re.IGNORECASE,
)
_OF_CUPY = re.compile(r"[/\\]cupy[/\\]_sorting[/\\]sort\.py$")
# What functions that sort do by default.
_LAST_AXIS_ASCENDING = [ast.Constant(-1), ast.Constant(value=False)]
# By the function that sorts, and whether the greatest element is used.
_INSTEAD = {
    ("argsort", False): "argmin",
    ("argsort", True): "argmax",
    ("sort", False): "min",
    ("sort", True): "max",
}


@dataclass(frozen=True, eq=False, slots=True)
class SortedExtremes:
    """Sorts of a line of which it uses the first or the last elements.

    Attributes:
        work: The kernels that sort, as a `Schedule` numbers them.
        called: The function that sorts.
        instead: The function that finds the same.
    """

    work: "NDArray[Any]"
    called: str
    instead: str


def sorted_extremes(schedule: "Schedule", device: int) -> "Iterator[SortedExtremes]":
    """Yield the lines of the program that sort to take one element along the sorted axis.

    As `cp.argsort(d, axis=1)[:, 0]`: nothing else can use a result without a name. The line calls
    CuPy's or PyTorch's function itself, and no other that may sort.

    Args:
        schedule: The schedule.
        device: Ordinal.
    """
    recording = schedule.recording
    names = plain(recording.tables["activities"]["name"])[schedule.rows]
    work = np.flatnonzero(
        (schedule.device == device)
        & (schedule.kind == KERNEL)
        & (schedule.call >= 0)
        & are_named(recording.tables, names, _SORTS.search)
    )
    stacks = stacks_of(recording.tables, schedule.call[work])
    lines = line_numbers(recording, stacks)
    for line in np.unique(lines).tolist():
        rows = np.flatnonzero(lines == line)
        found = {
            _extreme(recording.call_stacks.frames(each)) for each in set(stacks[rows].tolist())
        }
        if len(found) == 1 and (extreme := found.pop()) is not None:
            called, is_greatest = extreme
            yield SortedExtremes(work[rows], called, _INSTEAD[called, is_greatest])


def _extreme(frames: "list[Frame]") -> tuple[str, bool] | None:
    """Return the function by which the innermost line sorts, and if it takes the greatest element.

    None if it may use more of the result.
    """
    inner = list(takewhile(lambda each: each.is_installed, frames))
    if len(inner) == len(frames):
        return None
    if any(not _OF_CUPY.search(each.filename) for each in inner):
        return None
    tree = parsed(frames[len(inner)].source.strip())
    if tree is None:
        return None
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    sorts = [each for each in calls if _MAY_SORT.search(name_called(each))]
    taken = {
        id(each.value): _taken(each.value, each.slice, has_frames=bool(inner))
        for each in ast.walk(tree)
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Call)
    }
    found = {(name_called(each), taken.get(id(each))) for each in sorts}
    if len(found) != 1:
        return None
    name, is_greatest = found.pop()
    # PyTorch's `sort` returns two arrays.
    if is_greatest is None or name not in ({"argsort", "sort"} if inner else {"argsort"}):
        return None
    return name, is_greatest


def _taken(call: ast.Call, index: ast.expr, *, has_frames: bool) -> bool | None:
    """Return whether an index takes the greatest element along the sorted axis, or the least.

    None if it takes others, or if the axis or the order is not known.

    Args:
        call: The call that sorts.
        index: The index.
        has_frames: Whether it calls a function of Python, which methods of arrays are not.
    """
    parts = parts_of_index(index)
    numbers = [place for place, each in enumerate(parts) if number_in(each) in {0, -1}]
    if len(numbers) != 1:
        return None
    (place,) = numbers
    others = [each for each in parts if each is not parts[place]]
    if not all(is_ellipsis(each) or is_whole(each) for each in others):
        return None
    follows = any(is_ellipsis(each) for each in parts[:place])
    axis, descends = _order(call, has_frames=has_frames)
    if axis is None or axis != (place - len(parts) if follows else place):
        return None
    return None if descends is None else (number_in(parts[place]) == -1) != descends


def _order(call: ast.Call, *, has_frames: bool) -> tuple[int | None, bool | None]:
    """Return the axis along which a call sorts, and whether it descends, as PyTorch can.

    Each is None if the call does not contain it as a constant. They are in this order among the
    arguments behind the array, which is the first one of functions, but not of methods.
    """
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None, None
    named = {each.arg: each.value for each in call.keywords}
    if None in named:
        return None, None
    is_function = has_frames or isinstance(call.func, ast.Name)
    is_function |= ast.unparse(call.func) == "torch.argsort"
    given = call.args[int(is_function) :]
    given += _LAST_AXIS_ASCENDING[len(given) :]
    axis = named.get("axis", named.get("dim", given[0]))
    return number_in(axis), _truth(named.get("descending", given[1]))


def _truth(node: ast.expr) -> bool | None:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, bool):
        return None
    return node.value
