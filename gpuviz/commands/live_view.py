"""Headline numbers on the last lines of a terminal while a program runs."""

import os
import threading
import time
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gpuviz.commands.output import console
from gpuviz.commands.terminal_guard import TerminalGuard
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.live_numbers import live_headline

if TYPE_CHECKING:
    from gpuviz.recorder.recorder import Recorder

LINES = 4
_INTERVAL_S = 0.5
# At most this share of the time is spent on updates.
_SHARE = 0.02
_LONGEST_INTERVAL_S = 5.0
# Columns of the terminal for one number.
_CELL = 36
_FEWEST_ROWS = 12
_SAVE, _RESTORE = "\x1b7", "\x1b8"
# The whole terminal scrolls again, and the lines are empty, whatever its height is now.
_RELEASE = f"{_SAVE}\x1b[r\x1b[999;1H\x1b[{LINES - 1}A\x1b[J{_RESTORE}"


class LiveView:
    """Shows numbers below a scroll region, in which the program's output appears as usual.

    The program's streams are not redirected. If the terminal is too small, nothing is shown. The
    whole terminal scrolls again after the program has ended, in whatever way.

    Args:
        recorder: The active recorder.
        terminal: File descriptor of the terminal.
    """

    def __init__(self, recorder: "Recorder", terminal: int) -> None:
        self._recorder = recorder
        self._terminal = terminal
        self._stop = threading.Event()
        self._size = os.terminal_size((0, 0))
        self._guard: TerminalGuard | None = None
        self._thread = threading.Thread(target=self._run, name="gpuviz-live", daemon=True)

    def start(self) -> None:
        """Show the numbers until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Release the lines for the program."""
        self._stop.set()
        self._thread.join()
        if self._guard is not None:
            with suppress(OSError):
                self._write(_RELEASE)
            self._guard.dismiss()

    def _run(self) -> None:
        pause, is_first = 0.0, True
        while not self._stop.wait(pause):
            began = time.perf_counter()
            try:
                self._show()
            except (OSError, ValueError):
                return
            # The first update imports libraries.
            took, is_first = 0.0 if is_first else time.perf_counter() - began, False
            pause = min(max(_INTERVAL_S, took / _SHARE), _LONGEST_INTERVAL_S)

    def _show(self) -> None:
        size = os.get_terminal_size(self._terminal)
        if size.lines < _FEWEST_ROWS:
            return
        if self._guard is None:
            self._guard = TerminalGuard(self._terminal, _RELEASE)
        begin = "" if size == self._size else self._reserve(size)
        lines = rendered(live_headline(self._recorder.read_statistics()), size.columns)
        first = size.lines - LINES + 1
        painted = "".join(f"\x1b[{first + i};1H\x1b[2K{line}" for i, line in enumerate(lines))
        self._write(f"{begin}{_SAVE}{painted}{_RESTORE}")

    def _reserve(self, size: os.terminal_size) -> str:
        self._size = size
        # Scroll up first, so that the cursor is above the lines.
        room = "\n" * LINES + f"\x1b[{LINES}A"
        return f"{room}{_SAVE}\x1b[1;{size.lines - LINES}r{_RESTORE}"

    def _write(self, text: str) -> None:
        # A single write, so that the program's output cannot interleave.
        os.write(self._terminal, text.encode())


def rendered(numbers: list[Number], width: int) -> list[str]:
    """Return `LINES` lines of terminal text, at most ``width`` wide: a rule, then a table."""
    columns = max(1, width // _CELL)
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in range(columns):
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    cells = [
        Text.assemble(
            (number.name, "dim"), " ", (number.value, "bold"), " ", (number.detail, "dim")
        )
        for number in numbers
    ]
    for line in range(LINES - 1):
        table.add_row(*cells[line * columns : (line + 1) * columns])
    screen = console(file=StringIO(), force_terminal=True, width=width, height=LINES)
    with screen.capture() as capture:
        screen.print(Group(Rule("gpuviz", style="dim"), table))
    return capture.get().split("\n")[:LINES]
