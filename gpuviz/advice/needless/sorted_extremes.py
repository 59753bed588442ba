"""Sorts of which a program uses only the first or the last elements along the sorted axis."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, UNKNOWN
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.source.parsed_text import (
    is_ellipsis,
    is_whole,
    name_called,
    number_in,
    parsed,
    parts_of_index,
)
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named

_SORTS = re.compile(r"sort", re.IGNORECASE)
# Functions that sort; the kernels of a line with others may be of those.
_MAY_SORT = re.compile(
    r"sort|unique|median|quantile|percentile|partition|topk|rank|^isin$|^mode$|randperm|permutation|"
    r"digitize|bucketize|histogram|index_put",
    re.IGNORECASE,
)
_OF_CUPY = re.compile(r"[/\\]cupy[/\\]_sorting[/\\]sort\.py$")
# PyTorch sorts rows of up to 4096 elements by these kernels, of which `topk` also has some. On an
# H200, with PyTorch 2.11, it took longer than they do for rows of 16 and of 1024.
_OF_SHORT_ROWS = re.compile(r"InPlace")
LEAST_LONG_ROW = 4097
# PyTorch sorts an array of one row, or of few, row by row: by one of these for each, after one of
# the others for all. An array of many rows is sorted at once.
_OF_ROW = re.compile(r"DeviceRadixSortExclusiveSumKernel")
_BEFORE_ROWS = re.compile(r"\bfill_reverse_indices_kernel")
# With more elements, it takes longer. That is a quarter of the shortest rows.
_MOST_ELEMENTS = 1024
# The options of PyTorch's functions that sort which `topk` has, too, in another form.
_OPTIONS = {"input", "dim", "axis", "descending"}
# What functions that sort do by default.
_LAST_AXIS_ASCENDING = [ast.Constant(-1), ast.Constant(value=False)]
# What PyTorch's `sort` returns, by the function that returns it alone.
_RESULTS = {"values": "sort", 0: "sort", "indices": "argsort", 1: "argsort"}
# By the function that sorts, or would with the same result, and if the greatest element is used.
_INSTEAD = {
    ("argsort", False): "argmin",
    ("argsort", True): "argmax",
    ("sort", False): "min",
    ("sort", True): "max",
}


@dataclass(frozen=True)
class Extreme:
    """What a line takes of the result of a sort.

    Attributes:
        called: The function that sorts.
        result: The function that returns what the line uses: ``sort`` or ``argsort``.
        is_greatest: Whether these are the greatest elements, or their places.
        count: How many, with those between them and the end.
        is_one: Whether it is the very first or last element, by its number.
        is_of_one_row: Whether that is so only if the array has one row.
    """

    called: str
    result: str
    is_greatest: bool
    count: int
    is_one: bool
    is_of_one_row: bool


@dataclass(frozen=True, eq=False, slots=True)
class SortedExtremes:
    """Sorts of a line of which it uses the first or the last elements.

    Attributes:
        work: The kernels that sort, as a `Schedule` numbers them.
        instead: The function that finds the same.
        taken: What the line takes of the result.
    """

    work: np.ndarray
    instead: str
    taken: Extreme


def sorted_extremes(schedule: Schedule, device: int) -> Iterator[SortedExtremes]:
    """Yield the lines of the program that sort to take few elements along the sorted axis.

    As `cp.argsort(d, axis=1)[:, 0]`: nothing else can use a result without a name. The line calls
    CuPy's or PyTorch's function itself, and no other that may sort. More than one element is only
    found of PyTorch's, which has `topk`, and if it sorts rows of more than 4096 elements.

    Args:
        schedule: The schedule.
        device: Ordinal.
    """
    recording = schedule.recording
    names = plain(recording.tables["activities"]["name"])[schedule.rows]
    kernels = (schedule.device == device) & (schedule.kind == KERNEL) & (schedule.call >= 0)

    def are_of(pattern: re.Pattern[str]) -> np.ndarray:
        found: np.ndarray = are_named(recording.tables, names, pattern.search)
        return found

    work = np.flatnonzero(kernels & are_of(_SORTS))
    is_of_row, is_long = are_of(_OF_ROW), ~are_of(_OF_SHORT_ROWS)
    before_rows = np.flatnonzero(kernels & are_of(_BEFORE_ROWS))
    stacks = stacks_of(recording.tables, schedule.call[work])
    lines, arrays = (
        line_numbers(recording, each)
        for each in (stacks, stacks_of(recording.tables, schedule.call[before_rows]))
    )
    for line in np.unique(lines).tolist():
        rows = np.flatnonzero(lines == line)
        found = {
            _extreme(recording.call_stacks.frames(each)) for each in set(stacks[rows].tolist())
        }
        extreme = found.pop()
        if found or extreme is None:
            continue
        of_line, instead = work[rows], _INSTEAD[extreme.result, extreme.is_greatest]
        if not extreme.is_one:
            of_line, instead = of_line[is_long[of_line]], "topk"
        count = np.count_nonzero(is_of_row[of_line])
        has_one_row = 0 < count == np.count_nonzero(arrays == line)
        if len(of_line) and (has_one_row or not extreme.is_of_one_row):
            yield SortedExtremes(of_line, instead, extreme)


def arrays_of_sorts(device: DeviceBlocks, work: np.ndarray) -> np.ndarray:
    """Return the device's blocks that the line of some kernels has only to sort.

    They are what the kernels write, and the places from which they begin: not what they sort.

    Args:
        device: The blocks.
        work: The kernels that sort, as the `Schedule` numbers them.
    """
    used, schedule, tables = device.used, device.schedule, device.recording.tables
    is_by_them = np.isin(used.activity, schedule.rows[work])
    begins = are_named(tables, plain(tables["activities"]["name"]), _BEFORE_ROWS.search)
    begun = used.block[np.append(begins, False)[used.activity]]
    is_made = ~np.isin(used.mode, (READ, UNKNOWN)) | np.isin(used.block, begun)
    blocks = distinct(device.place[used.block[is_by_them & is_made]])
    blocks = blocks[blocks >= 0]
    lines, of_work = (
        line_numbers(device.recording, each)
        for each in (device.stack[blocks], stacks_of(tables, schedule.call[work]))
    )
    found: np.ndarray = blocks[np.isin(lines, of_work)]
    return found


def _extreme(frames: list[Frame]) -> Extreme | None:
    """Return what the innermost line takes of the result of a function that sorts.

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
    sorts = [each for each in calls if _MAY_SORT.search(name_called(each)) and not _is_topk(each)]
    taken = {
        id(found[0]): _taken(*found, each.slice, has_frames=bool(inner))
        for each in ast.walk(tree)
        if isinstance(each, ast.Subscript)
        and (found := _sorted(each.value, has_frames=bool(inner))) is not None
    }
    extremes = {taken.get(id(each)) for each in sorts}
    return extremes.pop() if len(extremes) == 1 else None


def _is_topk(call: ast.Call) -> bool:
    """Return whether a call selects so few elements that no kernel sorts long rows for it."""
    if name_called(call) != "topk":
        return False
    named = [each.value for each in call.keywords if each.arg == "k"]
    count = next(iter([*named, *call.args[int(_is_function(call)) :]]), None)
    number = number_in(count)
    return number is not None and number <= _MOST_ELEMENTS


def _sorted(value: ast.expr, *, has_frames: bool) -> tuple[ast.Call, str] | None:
    """Return the call that computes a sorted array or its order, and which of them it is.

    None of other expressions. PyTorch's `sort` returns both.
    """
    if isinstance(value, ast.Call):
        name = name_called(value)
        of_one = {"argsort", "sort"} if has_frames else {"argsort"}
        return (value, name) if name in of_one else None
    if has_frames or not isinstance(value, ast.Attribute | ast.Subscript):
        return None
    call = value.value
    if not isinstance(call, ast.Call) or name_called(call) != "sort":
        return None
    part = value.attr if isinstance(value, ast.Attribute) else number_in(value.slice)
    result = _RESULTS.get(part)
    return None if result is None else (call, result)


def _taken(call: ast.Call, result: str, index: ast.expr, *, has_frames: bool) -> Extreme | None:
    """Return which elements an index takes along the sorted axis.

    None if it may take others than the first or the last, or if the axis or the order is not known.

    Args:
        call: The call that sorts.
        result: What it returns: ``sort`` or ``argsort``.
        index: The index.
        has_frames: Whether it calls a function of Python, which methods of arrays are not.
    """
    parts = parts_of_index(index)
    chosen = [
        place for place, each in enumerate(parts) if not (is_ellipsis(each) or is_whole(each))
    ]
    if len(chosen) != 1:
        return None
    (place,) = chosen
    follows = any(is_ellipsis(each) for each in parts[:place])
    axis, descends = _order(call, has_frames=has_frames)
    ends = _ends(parts[place])
    if axis is None or descends is None or ends is None:
        return None
    # `[:5]` of an array of one row, which is usually no row of a matrix.
    is_of_one_row = len(parts) == 1 and axis == -1 and isinstance(parts[0], ast.Slice)
    if not is_of_one_row and axis != (place - len(parts) if follows else place):
        return None
    count, is_last = ends
    is_one = number_in(parts[place]) in {0, -1}
    if has_frames and not is_one:
        return None
    has_others = not {each.arg for each in call.keywords} <= _OPTIONS
    if not has_frames and (has_others or count > _MOST_ELEMENTS):
        return None
    return Extreme(name_called(call), result, is_last != descends, count, is_one, is_of_one_row)


def _ends(part: ast.expr) -> tuple[int, bool] | None:
    """Return how many elements from an end have all that a part of an index takes, and if the last.

    None if that is not constant.
    """
    number = number_in(part)
    if number is not None:
        return (number + 1, False) if number >= 0 else (-number, True)
    if not isinstance(part, ast.Slice) or part.step is not None:
        return None
    lower, upper = number_in(part.lower), number_in(part.upper)
    is_at_begin = part.lower is None or (lower is not None and lower >= 0)
    is_at_end = part.upper is None or (upper is not None and upper < 0)
    if is_at_begin and upper is not None and upper > 0:
        return upper, False
    return (-lower, True) if is_at_end and lower is not None and lower < 0 else None


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
    given = call.args[int(has_frames or _is_function(call)) :]
    given += _LAST_AXIS_ASCENDING[len(given) :]
    axis = named.get("axis", named.get("dim", given[0]))
    return number_in(axis), _truth(named.get("descending", given[1]))


def _is_function(call: ast.Call) -> bool:
    """Return whether a call is one of a function of PyTorch, whose first argument is the array."""
    return isinstance(call.func, ast.Name) or ast.unparse(call.func).startswith("torch.")


def _truth(node: ast.expr) -> bool | None:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, bool):
        return None
    return node.value
