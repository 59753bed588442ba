"""Complex FFTs of real arrays of which a line of the program takes the half that is independent."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import Function
from gpuviz.advice.arrays.part_reads import read_bytes
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.source.parsed_text import (
    is_ellipsis,
    is_whole,
    name_called,
    number_in,
    parts_of_index,
)
from gpuviz.advice.source.taken_parts import tree_of_line
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import TRANSFORM
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct

_FILE = re.compile(r"[/\\](?:cupy|cupyx[/\\]scipy)[/\\]fft[/\\]_fft\.py$")
_CONVERTS = "_convert_dtype"
_COMPLEX = {"float32": "complex64", "float64": "complex128"}
_REAL = {"fft": "rfft", "fft2": "rfft2", "fftn": "rfftn"}
# Of the bytes of a result: half of them and one element of each row, which has 16 or more.
_MOST_SHARE = 9 / 16


@dataclass(frozen=True, slots=True)
class _Half:
    """How a statement takes the half of a result.

    Attributes:
        is_known: Whether the text shows that it is the half of the axis.
        is_first: Whether it is the half of the first axis, and the FFT is along the last one.
        taken: The expression that takes it.
        instead: The expression with the FFT of real arrays.
    """

    is_known: bool
    is_first: bool
    taken: str
    instead: str


@dataclass(frozen=True, eq=False, slots=True)
class RealTransforms:
    """The complex FFTs of real arrays of a line, whose results it takes the half of.

    Attributes:
        conversions: The kernels that convert the arrays, as a `Schedule` numbers them.
        converted: What they write, indices of the device's blocks.
        results: The results of the FFTs, indices of the device's blocks.
        transforms: The kernels of the FFTs.
        stack: One of the line's call stacks.
        taken: The expression that takes the half.
        instead: The expression with the FFT of real arrays.
    """

    conversions: np.ndarray
    converted: np.ndarray
    results: np.ndarray
    transforms: np.ndarray
    stack: int
    taken: str
    instead: str


def real_transforms(device: DeviceBlocks) -> Iterator[RealTransforms]:
    """Yield the lines that take half of a complex FFT of real arrays.

    The line calls CuPy's `fft`, `fft2` or `fftn`, which first converts a real array, and takes at
    most `n // 2 + 1` elements of what that returns along the last axis of the FFT, as in
    ``cp.fft.fft(x, axis=1)[:, : n // 2 + 1]``. Nothing else can use the rest, which has no name.
    That this is the half shows in the text, if `n` is the length of that axis or of the FFT, or by
    the kernels that read the result: all read at most 9/16 of it.
    """
    launches, recording = device.elementwise, device.recording
    chosen = np.flatnonzero(launches.where(_to_complex))
    chosen = chosen[device.place[launches.target[chosen]] >= 0]
    stacks = stacks_of(recording.tables, launches.call[chosen])
    known, place = np.unique(stacks, return_inverse=True)
    frames = recording.call_stacks.frames
    is_real = np.array([_is_conversion(frames(each)) for each in known.tolist()], bool)
    chosen, stacks = chosen[is_real[place.ravel()]], stacks[is_real[place.ravel()]]
    if not len(chosen):
        return
    uses, lines = _Uses(device), line_numbers(recording, stacks)
    for line in np.unique(lines).tolist():
        rows = chosen[lines == line]
        found = _of_line(uses, rows, int(stacks[lines == line][0]))
        if found is not None:
            yield found


def _to_complex(function: Function) -> bool:
    kinds = function.inputs
    return function.name == "copy" and [_COMPLEX.get(each) for each in kinds] == [function.output]


def _called(frames: list[Frame]) -> str:
    """Return the function of CuPy's FFTs that the program's own line calls; empty without one."""
    inner = ""
    for each in frames:
        if not each.is_installed:
            return inner
        inner = each.name if _FILE.search(each.filename) else ""
    return ""


def _is_conversion(frames: list[Frame]) -> bool:
    return bool(frames) and frames[0].name == _CONVERTS and _called(frames) in _REAL


class _Uses(BlockUses):
    """The uses of a device's blocks.

    Attributes:
        device: The blocks.
        stack: The call stack of each row.
        is_transform: Whether a kernel of cuFFT makes it.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        super().__init__(device)
        self.device = device
        self.stack = stacks_of(device.recording.tables, self.call)
        self.is_transform = self.are_of(TRANSFORM)
        self._origins: dict[int, tuple[str, str]] = {}
        self._touches = np.flatnonzero(device.place[device.used.block] >= 0)

    def origin(self, stack: int) -> tuple[str, str]:
        """Return the program's own line of a call stack, and the FFT that it calls."""
        if stack not in self._origins:
            call_stacks = self.device.recording.call_stacks
            line = call_stacks.user_frame(stack)
            name = _called(call_stacks.frames(stack))
            self._origins[stack] = ("" if line is None else line.site, name)
        return self._origins[stack]

    def are_alike(self, block: int, other: int) -> bool:
        """Return whether a block is no work area, and as large as another."""
        requested = self.device.requested
        is_area = bool(self.device.is_used_at_any_time[block])
        return bool(requested[block] == requested[other]) and not is_area

    def are_small(self, rows: np.ndarray) -> bool:
        """Return whether all of some rows only read, and at most about half of their block."""
        most = self.device.requested[self.block[rows]] * _MOST_SHARE
        read = read_bytes(self.device, self._touches[rows])
        return bool(((read > 0) & (read <= most)).all())


def _of_line(uses: _Uses, launches: np.ndarray, stack: int) -> RealTransforms | None:
    """Return the FFTs of a line, by the launches that convert their arrays."""
    device, elementwise = uses.device, uses.device.elementwise
    recording = device.recording
    name = _called(recording.call_stacks.frames(stack))
    half = _half_of(tree_of_line(recording, stack), name)
    if half is None:
        return None
    converted = device.place[elementwise.target[launches]]
    transforms, results = list[int](), list[int]()
    for block, call in zip(converted.tolist(), elementwise.call[launches].tolist(), strict=True):
        made = _result_of(uses, block, call, uses.origin(stack))
        if made is None or (half.is_first and len(made[1]) == 1):
            return None
        result, work, later = made
        if not half.is_known and not (device.is_seen[result] and uses.are_small(later)):
            return None
        results.append(result)
        transforms += work.tolist()
    return RealTransforms(
        conversions=device.schedule.number[elementwise.activity[launches]],
        converted=converted,
        results=np.array(results),
        transforms=distinct(np.array(transforms)),
        stack=stack,
        taken=half.taken,
        instead=half.instead,
    )


def _result_of(
    uses: _Uses, converted: int, conversion: int, origin: tuple[str, str]
) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the result of an FFT, its kernels, and the later uses of the result.

    None if it is unknown which block is the result, or nothing uses it.

    Args:
        uses: The uses of all blocks.
        converted: The block that the FFT reads.
        conversion: The row of ``api_calls`` that writes it.
        origin: Its line, and the FFT that this calls.
    """
    left, chain = [converted], {converted}
    work, later = list[int](), dict[int, Any]()
    while left:
        block = left.pop()
        rows = uses.of_block(block)
        rows = rows[uses.call[rows] != conversion]
        is_within = np.array([uses.origin(each) == origin for each in uses.stack[rows].tolist()])
        is_within = is_within.astype(bool)
        if block != converted and not is_within.all():
            later[block] = rows[~is_within]
        for row in rows[is_within].tolist():
            work += [int(uses.work[row])] if uses.is_transform[row] else []
            found = [each for each in uses.beside(row).tolist() if uses.are_alike(each, converted)]
            left += [each for each in found if each not in chain]
            chain.update(found)
    if len(later) != 1 or not work:
        return None
    ((result, rows),) = later.items()
    return result, distinct(np.array(work)), rows


def _half_of(tree: ast.Module | None, name: str) -> _Half | None:
    """Return how a statement takes the half of what a function returns; None if it may use more."""
    if tree is None:
        return None
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    calls = [each for each in calls if name_called(each) == name]
    taken = {
        id(each.value): each
        for each in ast.walk(tree)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
    }
    found = [_half(each, taken[id(each)], name) if id(each) in taken else None for each in calls]
    known = [each for each in found if each is not None]
    return known[0] if len(known) == len(found) == 1 else None


def _half(call: ast.Call, taken: ast.Subscript, name: str) -> _Half | None:
    """Return how a subscript takes the half of what a call returns."""
    arguments = _arguments(call, name)
    axis = None if arguments is None else arguments[2]
    parts = parts_of_index(taken.slice)
    halves = [(place, _length_halved(each)) for place, each in enumerate(parts)]
    halves = [(place, length) for place, length in halves if length]
    if arguments is None or axis is None or len(halves) != 1:
        return None
    ((place, length),) = halves
    others = [each for each in parts if each is not parts[place]]
    if not all(_keeps_axes(each) for each in others):
        return None
    follows = any(map(is_ellipsis, parts[:place]))
    if (place if axis >= 0 else place - len(parts)) != axis or (follows and axis >= 0):
        return None
    is_first = axis < 0 and not follows and place == 0
    if is_first and name != "fft":
        return None
    array, size, _ = arguments
    # An FFT of another length than the array's has its own.
    lengths = [size] if size else [f"{array}.shape[{axis}]"]
    lengths += [] if size or follows else [f"{array}.shape[{place}]"]
    lengths += [f"len({array})"] if place == 0 and not (size or follows) else []
    is_all = _is_with_middle(parts[place]) and all(is_whole(e) or is_ellipsis(e) for e in others)
    real = ast.Call(_renamed(call.func, _REAL[name]), call.args, call.keywords)
    instead = real if is_all else ast.Subscript(real, taken.slice, ast.Load())
    return _Half(length in lengths, is_first, ast.unparse(taken), ast.unparse(instead))


def _arguments(call: ast.Call, name: str) -> tuple[str, str, int | None] | None:
    """Return the text of an FFT's array, that of its length, and the last axis.

    The text of the length is empty without one, and the axis is None if it is no constant. None of
    a call with other arguments.
    """
    size_name, axis_name = ("n", "axis") if name == "fft" else ("s", "axes")
    named = {each.arg: each.value for each in call.keywords}
    if not named.keys() <= {size_name, axis_name, "norm"}:
        return None
    if not call.args or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    array, *given = call.args
    size = _last(named.get(size_name, given[0] if given else None))
    axis = _last(named.get(axis_name, given[1] if given[1:] else None))
    is_default = axis is None or (isinstance(axis, ast.Constant) and axis.value is None)
    number = -1 if is_default else number_in(axis)
    return ast.unparse(array), "" if size is None else ast.unparse(size), number


def _last(value: ast.expr | None) -> ast.expr | None:
    """Return the last one of several values."""
    return value.elts[-1] if isinstance(value, ast.Tuple | ast.List) and value.elts else value


def _keeps_axes(part: ast.expr) -> bool:
    """Return whether a part of an index is about one axis, or `...`."""
    return isinstance(part, ast.Slice) or is_ellipsis(part) or number_in(part) is not None


def _length_halved(part: ast.expr) -> str:
    """Return the text of `n` of a slice that ends at `n // 2` or `n // 2 + 1`; else nothing."""
    if not isinstance(part, ast.Slice):
        return ""
    first, step = (1 if each is None else number_in(each) for each in (part.lower, part.step))
    if first is None or first < 0 or step is None or step < 1:
        return ""
    match part.upper:
        case (
            ast.BinOp(left=length, op=ast.FloorDiv(), right=ast.Constant(value=2))
            | ast.BinOp(
                left=ast.BinOp(left=length, op=ast.FloorDiv(), right=ast.Constant(value=2)),
                op=ast.Add(),
                right=ast.Constant(value=1),
            )
        ):
            return ast.unparse(length)
    return ""


def _is_with_middle(part: ast.expr) -> bool:
    """Return whether a slice is all that the FFT of real arrays returns: `: n // 2 + 1`."""
    if not isinstance(part, ast.Slice) or part.lower or part.step:
        return False
    return isinstance(part.upper, ast.BinOp) and isinstance(part.upper.op, ast.Add)


def _renamed(function: ast.expr, name: str) -> ast.expr:
    if isinstance(function, ast.Attribute):
        return ast.Attribute(function.value, name, ast.Load())
    return ast.Name(name, ast.Load())
