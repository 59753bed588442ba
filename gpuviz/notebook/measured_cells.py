"""``%%gpuviz`` as the first line of a cell that otherwise runs as usual."""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from IPython.core.inputtransformer2 import cell_magic

from gpuviz.notebook.arguments import CELL_COMMAND, HELP

_MAGIC = re.compile(r"%%gpuviz(?P<arguments>[ \t].*)?$")

AtEnd = Callable[[], None]


class MeasuredCells:
    """Turns the line ``%%gpuviz`` into a call, and calls back when the cell has ended.

    IPython runs the rest of the cell unchanged: output, awaits, exceptions, stored variables and
    line numbers are those of the cell without the magic.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._running: dict[int, list[str]] = {}
        self._open: list[tuple[str, AtEnd]] = []

    def register(self) -> None:
        """Start measuring cells that begin with ``%%gpuviz``."""
        self._shell.input_transformers_cleanup.append(call_in_place_of_magic)
        self._shell.events.register("pre_run_cell", self._begin_cell)
        self._shell.events.register("post_run_cell", self._end_cell)

    def unregister(self) -> None:
        """Remove all hooks; the measurement of a running cell ends now."""
        with suppress(ValueError):
            self._shell.input_transformers_cleanup.remove(call_in_place_of_magic)
        for event, callback in (
            ("pre_run_cell", self._begin_cell),
            ("post_run_cell", self._end_cell),
        ):
            with suppress(ValueError):
                self._shell.events.unregister(event, callback)
        self._end_all()

    def call_at_end(self, at_end: AtEnd) -> None:
        """Call ``at_end`` when the running cell has ended, in whatever way."""
        running = self._running.get(threading.get_ident())
        self._open.append((running[-1] if running else "", at_end))
        # IPython calls in the order of registration: a recorder ends the range of the cell first.
        self._shell.events.unregister("post_run_cell", self._end_cell)
        self._shell.events.register("post_run_cell", self._end_cell)

    def _begin_cell(self, *arguments: Any) -> None:
        info = arguments[0] if arguments else None
        running = self._running.setdefault(threading.get_ident(), [])
        running.append(getattr(info, "raw_cell", ""))

    def _end_cell(self, *arguments: Any) -> None:
        info = getattr(arguments[0], "info", None) if arguments else None
        raw_cell = getattr(info, "raw_cell", "")
        running = self._running.get(threading.get_ident(), [])
        if raw_cell in running:
            del running[len(running) - 1 - running[::-1].index(raw_cell) :]
        if not running:
            self._running.pop(threading.get_ident(), None)
        ended = [entry for entry in self._open if entry[0] == raw_cell]
        self._open = [entry for entry in self._open if entry[0] != raw_cell]
        for _, at_end in ended:
            at_end()

    def _end_all(self) -> None:
        opened, self._open = self._open, []
        for _, at_end in opened:
            at_end()


def call_in_place_of_magic(lines: list[str]) -> list[str]:
    """Return the lines of a cell with ``%%gpuviz`` in the first one replaced by a call."""
    magic = _MAGIC.match(lines[0].rstrip("\n")) if lines else None
    if magic is None:
        return lines
    arguments = (magic["arguments"] or "").strip()
    # A request for help must not run the cell, which may not be written yet.
    asks = not set(HELP).isdisjoint(arguments.split())
    body = [] if asks else lines[1:]
    if not asks and not "".join(body).strip():
        return lines
    line = f"{CELL_COMMAND} {arguments}".strip()
    call = f"get_ipython().run_line_magic('gpuviz', {line!r})\n"
    rest: list[str] = cell_magic(body)  # type: ignore[no-untyped-call] # IPython's
    return [call, *rest]


# IPython's check for complete cells must still see a cell magic.
call_in_place_of_magic.has_side_effects = True  # type: ignore[attr-defined]
