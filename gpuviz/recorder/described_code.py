"""Whose code a frame of a call stack has, where it is, and the text around its line."""

import linecache
import os
import re
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import TypedDict

from gpuviz.data.escaping import as_unicode
from gpuviz.data.implied_columns import GENERATED, INSTALLED, OWN, assigned_names, origin
from gpuviz.quantities import format_counted
from gpuviz.recorder.environment import process_start_unix_ns

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
# Of the process that was forked, if this one was.
_STARTED_NS = process_start_unix_ns()
# No library writes a module so early; that time is as exact as the clock's ticks.
_STARTS_FOR_NS = 500_000_000
# The file of torch.optim that changes no parameters.
_SCHEDULERS = "lr_scheduler.py"
_IPYTHON_INPUT = re.compile(r"<ipython-input-(\d+)-")


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
class DescribedCode:
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
        """Return the row of a frame at an instruction's offset in bytes.

        Reads the source file, unless it is in Python's ``linecache``.
        """
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


LEFT_OUT = DescribedCode(
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


def described(code: CodeType, cell: int) -> DescribedCode:
    """Return the properties of a code object that runs in a cell, or in none (0)."""
    filename = code.co_filename
    is_gpuviz = is_within(filename, "gpuviz") and not _has_folders(filename, _DEMO_PROGRAMS)
    shown = f"In [{cell}]" if cell else filename
    whose = origin(shown)
    if whose == OWN:
        # Without a working directory, or with bytes in sys.path.
        with suppress(OSError, TypeError):
            whose = GENERATED if _is_temporary(shown) else OWN
    return DescribedCode(
        code=code,
        filename=shown,
        cell=cell,
        is_module=is_module(code),
        is_gpuviz=is_gpuviz,
        is_command=is_gpuviz and _has_folders(filename, _COMMANDS),
        is_of_range=is_within(filename, "gpuviz.recorder.ranges"),
        is_torch=is_within(filename, "torch"),
        is_optimizer=is_within(filename, "torch.optim") and PurePath(filename).name != _SCHEDULERS,
        is_runner=is_gpuviz
        or filename == _RUNPY_FILENAME
        or PurePath(filename).name in _KERNEL_LAUNCHERS
        or any(is_within(filename, name) for name in _RUNNERS),
        origin=whose,
        last_line=_last_line(code) if whose == OWN else 0,
    )


def _is_temporary(filename: str) -> bool:
    """Return whether a library wrote a file and loaded it, as PyTorch Geometric its templates.

    It is the module of a temporary file, from where nothing can be imported by name, and was
    written while this process ran: a program in such a folder may be loaded by its path, too.
    """
    file = Path(filename)
    # The function `tempfile.gettempdir` has a lock, which a fork may leave held for ever.
    folders = (tempfile.tempdir, *map(os.environ.get, _TEMPORARY_VARIABLES), *_TEMPORARY_FOLDERS)
    if not any(file.is_relative_to(each) for each in folders if each):
        return False
    if any(file.is_relative_to(each or Path.cwd()) for each in sys.path):
        return False
    if _is_older_than_process(file):
        return False
    # A module that is loaded lazily would be loaded by asking for an attribute.
    return any(
        object.__getattribute__(each, "__dict__").get("__file__") == filename
        for name, each in sys.modules.copy().items()
        if name != "__main__" and isinstance(each, ModuleType)
    )


def _is_older_than_process(file: Path) -> bool:
    """Return whether a file was written before this process started; not if it is gone."""
    with suppress(OSError):
        return file.stat().st_mtime_ns < _STARTED_NS + _STARTS_FOR_NS
    return False


def is_module(code: CodeType) -> bool:
    """Return whether a code object is that of a module, script or cell."""
    # IPython up to 8.4 called the module of a cell `<cell line: 1>`.
    return code.co_name == "<module>" or code.co_name.startswith("<cell line:")


def _has_folders(filename: str, folders: tuple[str, ...]) -> bool:
    return f"/{'/'.join(folders)}/" in filename


def is_within(filename: str, module_name: str) -> bool:
    """Return whether a file belongs to a loaded module or package."""
    module = sys.modules.get(module_name)
    if module is None:
        return False
    packages = getattr(module, "__path__", None)
    if packages is None:
        return filename == getattr(module, "__file__", None)
    return any(filename.startswith(f"{package}/") for package in packages)


def cell_of(filename: str) -> int:
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
