"""Conversion of captured call stacks to rows of ``stacks`` and ``frames``."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import PurePath
from types import CodeType
from typing import TypedDict

from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import INSTALLED, OWN, user_frame
from gpuviz.frameworks.torch_modules import MODULE_CALL
from gpuviz.quantities import format_counted
from gpuviz.recorder.described_code import (
    LEFT_OUT,
    DescribedCode,
    FrameRow,
    cell_of,
    described,
    is_module,
    is_within,
)

# The file of torch.optim that wraps each step.
_STEPS = "optimizer.py"
# The file of torch that runs functions with or without gradients.
_CONTEXTS = "torch.utils._contextlib"
# How tensors of other kinds than torch's run an operation.
_OPERATIONS = frozenset(("__torch_dispatch__", "__torch_function__"))

Stack = Sequence[tuple[CodeType | None, int]]
"""Pairs of code object and instruction offset in bytes, innermost first.

None stands for frames left out, with their number: those in the middle of a deep stack, or all.
"""

Marks = tuple[bool, str, int, bool]
"""What `gpuviz._core.Session.marks_of` returns for a stack."""
_NOWHERE: Marks = (False, "", -1, False)


class StackRow(TypedDict):
    """Row of the table ``stacks``."""

    id: int
    frames: list[int]
    user_frame: int
    module: str
    phase: str
    forward_frame: int
    differentiable: int


class FrameResolver:
    """Numbers the frames of a recording, and returns the row of each frame once.

    Frames around the user's code are omitted: those outside the module of the notebook cell or
    script, those of the machinery that runs it, and the innermost ones that are gpuviz's own or of
    functions of Python and of packages that gpuviz calls. A stack without user frames has no
    frames.

    Attributes:
        next_stack: The id of the next stack, from 1.
    """

    def __init__(self) -> None:
        self.next_stack = 1
        # Ids of stacks of which no frame is known.
        self._lost: set[int] = set()
        self._codes: dict[int, DescribedCode] = {}
        self._cell_in_cell: dict[str, int] = {}
        self._frame_ids: dict[tuple[int, int], int] = {}
        self._row_ids: dict[tuple[str, str, int, int], int] = {}
        # Whose code the frames have that are not of the program's own files.
        self._origins: dict[int, int] = {}
        # The user's frame and the module of each stack that has either.
        self._places: dict[int, tuple[int, str]] = {}

    def resolve(
        self, stacks: Iterable[Stack], marks: Iterable[Marks] = ()
    ) -> tuple[list[StackRow], list[FrameRow]]:
        """Return a row for each stack, in order, and the rows of new frames.

        Reads source files that are not in Python's ``linecache`` yet.

        Args:
            stacks: The stacks ``next_stack``, ``next_stack + 1``, ...
            marks: What they are in, in the same order.
        """
        stack_rows: list[StackRow] = []
        frame_rows: list[FrameRow] = []
        for stack, place in zip(stacks, chain(marks, repeat(_NOWHERE)), strict=False):
            frames = [
                self._frame_id(code, instruction, frame_rows)
                for code, instruction in self._user_part(stack)
            ]
            own = user_frame(frames, lambda frame: self._origins.get(frame, OWN))
            stack_rows.append(self._row(stack, place, frames, own))
            if len(stack) == 1 and stack[0][0] is None:
                self._lost.add(self.next_stack)
            self.next_stack += 1
        return stack_rows, frame_rows

    def _row(self, stack: Stack, marks: Marks, frames: list[int], own: int) -> StackRow:
        is_in_module, module, forward, has_node = marks
        phase, forward_frame = "", 0
        if forward >= 0:
            phase = "backward"
            forward_frame, forward_module = self._places.get(forward, (0, ""))
            module = module or forward_module
        elif _is_of_optimizer([self._code(code) for code, _ in stack]):
            phase = "optimizer"
        elif is_in_module or has_node:
            phase = "forward"
        self._places[self.next_stack] = own, module
        return StackRow(
            id=self.next_stack,
            frames=frames,
            user_frame=own,
            module=as_unicode(module),
            phase=phase,
            forward_frame=forward_frame,
            differentiable=int(has_node),
        )

    def continue_after(self, stacks: int, frames: int) -> None:
        """Forget rows that `resolve` returned but nobody stored.

        Args:
            stacks: The number of rows of stacks that are stored.
            frames: The number of rows of frames that are stored.
        """
        self.next_stack = stacks + 1
        if len(self._row_ids) > frames:
            self._row_ids = {of: row for of, row in self._row_ids.items() if row <= frames}
            self._frame_ids = {of: row for of, row in self._frame_ids.items() if row <= frames}
            self._origins = {row: of for row, of in self._origins.items() if row <= frames}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on stacks that are lost; empty if there are none."""
        if not self._lost:
            return ()
        counted = format_counted(len(self._lost), "call stack", "call stacks")
        note = (
            "could not be read: the functions had returned before Python could say which they were."
        )
        return (f"{counted} {note}",)

    def _frame_id(self, code: CodeType | None, instruction: int, new_rows: list[FrameRow]) -> int:
        key = (id(code), instruction)
        if key not in self._frame_ids:
            row = self._code(code).row(len(self._row_ids) + 1, instruction)
            content = (row["name"], row["filename"], row["line"], row["cell"])
            if content not in self._row_ids:
                self._row_ids[content] = row["id"]
                new_rows.append(row)
                self._origins[row["id"]] = row["installed"]
            self._frame_ids[key] = self._row_ids[content]
        return self._frame_ids[key]

    def _user_part(self, stack: Stack) -> Stack:
        codes: list[DescribedCode] = []
        cell = 0
        for code, _ in reversed(stack):
            codes.append(self._code(code, cell))
            if codes[-1].is_module:
                cell = cell or codes[-1].cell
        codes.reverse()
        end = _outermost_of_user(codes) + 1
        return stack[_within_gpuviz(codes[:end]) : end]

    def _code(self, code: CodeType | None, outer_cell: int = 0) -> DescribedCode:
        """Return the properties of a code object; ``outer_cell`` is the cell it runs in, or 0."""
        if code is None:
            return LEFT_OUT
        known = self._codes.get(id(code))
        if known is not None:
            return known
        cell = cell_of(code.co_filename)
        # A cell magic may run its body as a cell with another number than the one shown.
        if cell and is_module(code):
            self._cell_in_cell[code.co_filename] = outer_cell
        cell = self._cell_in_cell.get(code.co_filename) or cell
        self._codes[id(code)] = found = described(code, cell)
        return found


def _outermost_of_user(codes: Sequence[DescribedCode]) -> int:
    """Return the position of the user's outermost frame; -1 if there is none."""
    hosts = [i for i, code in enumerate(codes) if code.is_command]
    inside = codes[: hosts[0]] if hosts else codes
    modules = [i for i, code in enumerate(inside) if code.is_module]
    # Use the innermost cell: a cell magic runs its body as a cell within the cell.
    for i in modules:
        if inside[i].cell:
            return i
    for i in reversed(modules):
        if i + 1 < len(inside) and inside[i + 1].is_runner and not inside[i].is_runner:
            return i
    end = len(inside) - 1
    while end >= 0 and inside[end].is_runner:
        end -= 1
    is_called_by_gpuviz = any(code.is_gpuviz and not code.is_of_range for code in codes[end + 1 :])
    if is_called_by_gpuviz and not modules and not any(map(_is_of_user, inside[: end + 1])):
        return -1  # gpuviz itself calls Python or a package, as when the program ends
    return end


def _is_of_user(code: DescribedCode) -> bool:
    return code.origin != INSTALLED and not code.is_gpuviz


def _is_of_optimizer(codes: Sequence[DescribedCode]) -> bool:
    """Return whether a stack is of a step of an optimizer, and not of a closure that it calls.

    A closure computes the loss anew, with the forward and backward pass, as those of Lightning do.
    """
    called: DescribedCode | None = None
    for code in codes:
        if code.is_optimizer:
            is_closure = called is not None and called.code is not None and not called.is_torch
            # Steps of the program's own optimizers are called there, too.
            return not is_closure or PurePath(code.filename).name == _STEPS
        name = "" if code.code is None else code.code.co_name
        if name == MODULE_CALL:
            return False
        if name in _OPERATIONS:
            called = None
        elif not (code.is_gpuviz or is_within(code.filename, _CONTEXTS)):
            called = code
    return False


def _within_gpuviz(codes: Sequence[DescribedCode]) -> int:
    """Return how many of the innermost frames are gpuviz's, with what it calls of packages.

    A sample may find gpuviz importing a module, so that the innermost frames are Python's.
    """
    count = 0
    for i, code in enumerate(codes):
        if code.is_gpuviz and (count == i or not code.is_of_range):
            count = i + 1
        elif code.code is None or code.is_of_range or code.origin == OWN:
            break
    return count
