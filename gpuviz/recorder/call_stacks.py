"""Conversion of captured call stacks to rows of ``stacks`` and ``frames``."""

import linecache
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import TypedDict

from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import (
    GENERATED,
    INSTALLED,
    OWN,
    assigned_names,
    origin,
    user_frame,
)
from gpuviz.frameworks.torch_modules import MODULE_CALL
from gpuviz.quantities import format_counted

# Modules that run the user's code.
_RUNNERS = ("IPython", "ipykernel", "traitlets", "tornado", "asyncio", "concurrent", "threading")
_RUNPY_FILENAME = "<frozen runpy>"
# The compilers of ipykernel and of Google Colab.
_KERNEL_LAUNCHERS = ("ipykernel_launcher.py", "colab_kernel_launcher.py")
# gpuviz's own commands run the user's program; the demo's workloads count as the user's.
_COMMANDS = ("gpuviz", "commands")
_DEMO_PROGRAMS = (*_COMMANDS, "workloads")
# Lines recorded before and after each line of the user, those of a long function recorded
# together, and most characters of each.
_AROUND = 8
_TOGETHER = 200
_LONGEST_LINE = 200
# Where `tempfile` looks for a folder.
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")
_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - nothing is written there
# The file of torch.optim that changes no parameters, and the one that wraps each step.
_SCHEDULERS = "lr_scheduler.py"
_STEPS = "optimizer.py"
# The file of torch that runs functions with or without gradients.
_CONTEXTS = "torch.utils._contextlib"
# How tensors of other kinds than torch's run an operation.
_OPERATIONS = frozenset(("__torch_dispatch__", "__torch_function__"))
_IPYTHON_INPUT = re.compile(r"<ipython-input-(\d+)-")

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


class FrameRow(TypedDict):
    """Row of the table ``frames``."""

    id: int
    name: str
    filename: str
    line: int
    cell: int
    source: str
    installed: int
    assigned: str
    context: str
    context_line: int


@dataclass(frozen=True, slots=True)
class _Code:
    """Properties shared by all frames of a code object."""

    code: CodeType | None  # kept alive so that its id is not reused
    filename: str
    cell: int
    is_module: bool
    is_gpuviz: bool
    is_command: bool
    is_of_range: bool  # it may call a function that the user decorated
    is_runner: bool
    is_torch: bool
    is_optimizer: bool
    origin: int  # as in ``frames.installed``
    last_line: int  # 0 of code that is not the program's own, whose lines are not kept

    def row(self, frame_id: int, instruction: int) -> FrameRow:
        if self.code is None:
            left_out = format_counted(instruction, "frame")
            return FrameRow(
                id=frame_id,
                name=f"({left_out} left out)",
                filename="",
                line=0,
                cell=0,
                source="",
                installed=INSTALLED,
                assigned="",
                context="",
                context_line=0,
            )
        line = _line(self.code, instruction)
        source = linecache.getline(self.code.co_filename, line).strip()
        name = "<module>" if self.is_module else self.code.co_qualname
        is_own = self.origin == OWN
        first, context = _context(self.code, line, self.last_line) if is_own else (0, "")
        return FrameRow(
            id=frame_id,
            name=as_unicode(name),
            filename=as_unicode(self.filename),
            line=line,
            cell=self.cell,
            source=as_unicode(source),
            installed=self.origin,
            assigned=as_unicode(assigned_names(source)),
            context=as_unicode(context),
            context_line=first,
        )


_LEFT_OUT = _Code(
    code=None,
    filename="",
    cell=0,
    is_module=False,
    is_gpuviz=False,
    is_command=False,
    is_of_range=False,
    is_runner=False,
    is_torch=False,
    is_optimizer=False,
    origin=INSTALLED,
    last_line=0,
)


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
        self._codes: dict[int, _Code] = {}
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
        codes: list[_Code] = []
        cell = 0
        for code, _ in reversed(stack):
            codes.append(self._code(code, cell))
            if codes[-1].is_module:
                cell = cell or codes[-1].cell
        codes.reverse()
        end = _outermost_of_user(codes) + 1
        return stack[_within_gpuviz(codes[:end]) : end]

    def _code(self, code: CodeType | None, outer_cell: int = 0) -> _Code:
        """Return the properties of a code object; ``outer_cell`` is the cell it runs in, or 0."""
        if code is None:
            return _LEFT_OUT
        known = self._codes.get(id(code))
        if known is not None:
            return known
        cell = _cell_of(code.co_filename)
        # A cell magic may run its body as a cell with another number than the one shown.
        if cell and _is_module(code):
            self._cell_in_cell[code.co_filename] = outer_cell
        cell = self._cell_in_cell.get(code.co_filename) or cell
        self._codes[id(code)] = described = _describe(code, cell)
        return described


def _outermost_of_user(codes: Sequence[_Code]) -> int:
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


def _is_of_user(code: _Code) -> bool:
    return code.origin != INSTALLED and not code.is_gpuviz


def _is_of_optimizer(codes: Sequence[_Code]) -> bool:
    """Return whether a stack is of a step of an optimizer, and not of a closure that it calls.

    A closure computes the loss anew, with the forward and backward pass, as those of Lightning do.
    """
    called: _Code | None = None
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
        elif not (code.is_gpuviz or _within(code.filename, _CONTEXTS)):
            called = code
    return False


def _within_gpuviz(codes: Sequence[_Code]) -> int:
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


def _describe(code: CodeType, cell: int) -> _Code:
    filename = code.co_filename
    is_gpuviz = _within(filename, "gpuviz") and not _has_folders(filename, _DEMO_PROGRAMS)
    shown = f"In [{cell}]" if cell else filename
    whose = origin(shown)
    if whose == OWN:
        # Without a working directory, or with bytes in sys.path.
        with suppress(OSError, TypeError):
            whose = GENERATED if _is_temporary(shown) else OWN
    return _Code(
        code=code,
        filename=shown,
        cell=cell,
        is_module=_is_module(code),
        is_gpuviz=is_gpuviz,
        is_command=is_gpuviz and _has_folders(filename, _COMMANDS),
        is_of_range=_within(filename, "gpuviz.recorder.ranges"),
        is_torch=_within(filename, "torch"),
        is_optimizer=_within(filename, "torch.optim") and PurePath(filename).name != _SCHEDULERS,
        is_runner=is_gpuviz
        or filename == _RUNPY_FILENAME
        or PurePath(filename).name in _KERNEL_LAUNCHERS
        or any(_within(filename, name) for name in _RUNNERS),
        origin=whose,
        last_line=_last_line(code) if whose == OWN else 0,
    )


def _is_temporary(filename: str) -> bool:
    """Return whether a library wrote a file and loaded it, as PyTorch Geometric its templates.

    It is the module of a temporary file, from where nothing can be imported by name.
    """
    file = Path(filename)
    # The function `tempfile.gettempdir` has a lock, which a fork may leave held for ever.
    folders = (tempfile.tempdir, *map(os.environ.get, _TEMPORARY_VARIABLES), *_TEMPORARY_FOLDERS)
    if not any(file.is_relative_to(each) for each in folders if each):
        return False
    if any(file.is_relative_to(each or Path.cwd()) for each in sys.path):
        return False
    # A module that is loaded lazily would be loaded by asking for an attribute.
    return any(
        object.__getattribute__(each, "__dict__").get("__file__") == filename
        for name, each in sys.modules.copy().items()
        if name != "__main__" and isinstance(each, ModuleType)
    )


def _is_module(code: CodeType) -> bool:
    # IPython up to 8.4 called the module of a cell `<cell line: 1>`.
    return code.co_name == "<module>" or code.co_name.startswith("<cell line:")


def _has_folders(filename: str, folders: tuple[str, ...]) -> bool:
    return f"/{'/'.join(folders)}/" in filename


def _within(filename: str, module_name: str) -> bool:
    """Return whether a file belongs to a loaded module or package."""
    module = sys.modules.get(module_name)
    if module is None:
        return False
    packages = getattr(module, "__path__", None)
    if packages is None:
        return filename == getattr(module, "__file__", None)
    return any(filename.startswith(f"{package}/") for package in packages)


def _cell_of(filename: str) -> int:
    """Return the execution count of the cell compiled under a file name; 0 if there is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # Cells have names of files that do not exist; only the kernel's compiler knows their numbers.
    names = getattr(getattr(shell, "compile", None), "_filename_map", {})
    if filename in names:
        return int(names[filename])
    terminal_cell = _IPYTHON_INPUT.match(filename)
    return int(terminal_cell[1]) if terminal_cell else 0


def _context(code: CodeType, line: int, last_line: int) -> tuple[int, str]:
    """Return the number of the first line of a function around a line, and the lines' text.

    It is the same for all lines of a function, or of a part of a long one. Unknown lines are 0 and
    empty.
    """
    lines = linecache.getlines(code.co_filename)
    if not 1 <= line <= len(lines):
        return 0, ""
    begin, end = max(code.co_firstlineno, 1), last_line
    begin += max(line - begin, 0) // _TOGETHER * _TOGETHER
    first = max(begin - _AROUND, 1)
    last = max(min(begin + _TOGETHER - 1, end), line) + _AROUND
    around = (text.rstrip() for text in lines[first - 1 : last])
    shown = (f"{each[:_LONGEST_LINE]}…" if len(each) > _LONGEST_LINE else each for each in around)
    return first, "\n".join(shown)


def _last_line(code: CodeType) -> int:
    """Return the number of the last line of a function, of those within it too."""
    inner = (_last_line(each) for each in code.co_consts if isinstance(each, CodeType))
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max(*own, *inner, code.co_firstlineno, 1)


def _line(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
