"""Recording of notebook cells as ranges."""

import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from gpuviz import _core
from gpuviz.data.tables import DICTIONARIES

_CELL = DICTIONARIES["ranges", "kind"].index("cell")


class CellRanges:
    """Sends the cells of this process's IPython shell to one session, between `begin` and `end`.

    The cell that calls `begin` is recorded from that call on. Without a shell nothing is sent.
    """

    def __init__(self, session: _core.Session) -> None:
        self._session = session
        self._shell: Any = None
        # Open ranges of each thread, innermost last: cells of subshells run concurrently, and a
        # magic may run a cell inside a cell.
        self._open: dict[int, list[int | None]] = {}

    def begin(self) -> None:
        """Start recording cells."""
        self._shell = _running_shell()
        if self._shell is None:
            return
        if _running_cell(self._shell):
            self._begin_cell()
        self._shell.events.register("pre_run_cell", self._begin_cell)
        self._shell.events.register("post_run_cell", self._end_cell)

    def end(self) -> None:
        """Stop recording; a running cell ends with the session."""
        shell, self._shell = self._shell, None
        if shell is not None:
            with suppress(ValueError):  # already unregistered
                shell.events.unregister("pre_run_cell", self._begin_cell)
                shell.events.unregister("post_run_cell", self._end_cell)

    def _begin_cell(self, *arguments: Any) -> None:
        stack = self._open.setdefault(threading.get_ident(), [])
        has_number = getattr(arguments[0], "store_history", True) if arguments else True
        begun = None
        # Silent code of a front end must not be recorded as the next cell.
        if has_number or stack:
            number = _running_cell(self._shell) or self._shell.execution_count
            begun = _core.begin_range(self._session, f"In [{number}]".encode(), _CELL)
        stack.append(begun)

    def _end_cell(self, *_: Any) -> None:
        stack = self._open.get(threading.get_ident())
        begun = stack.pop() if stack else None
        if begun is not None:
            _core.end_range(self._session, begun)


def _running_shell() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _running_cell(shell: Any) -> int:
    """Return the execution count of the cell that contains the caller; 0 outside cells.

    A widget's message, for example, is handled outside cells. The shell's own count may already be
    that of the next cell, because IPython 9 increments it before its callbacks.
    """
    code = getattr(type(shell).run_cell_async, "__code__", None)
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - Python's documented way
    while frame is not None:
        if frame.f_code is code:
            number = getattr(frame.f_locals.get("result"), "execution_count", None)
            return int(number or shell.execution_count)
        frame = frame.f_back
    return 0
