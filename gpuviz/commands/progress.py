"""Progress bars for long work, on terminals only."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpuviz.commands.output import console
from gpuviz.formats.load_limit import size_on_disk
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress

    from gpuviz.recording import Recording


Item = TypeVar("Item")
ProgressCallback = Callable[[int, int], None]
"""Called with the amount done and the total, in any unit."""


def reading(file: Path) -> "Recording":
    """Return the recording in a file of any format that `gpuviz.load` reads.

    Raises:
        OSError: The file cannot be opened.
        FormatError: It cannot be read.
    """
    # For start-up time: all verbs import this module, and most read nothing.
    from gpuviz.formats.detection import read
    from gpuviz.recording import Recording

    with _shown(f"Reading {file.name} ({format_bytes(size_on_disk(file))})") as report:
        return Recording.of(read(file, report))


def reading_all(recordings: Iterable[Item], count: int) -> Iterator[Item]:
    """Yield recordings as they are read, and show how many of ``count`` are."""
    with _shown(f"Reading {count} recordings") as report:
        for done, each in enumerate(recordings, 1):
            report(done, count)
            yield each


@contextmanager
def writing(path: Path) -> Iterator[ProgressCallback]:
    """Show that a file is being written, and yield a function that reports progress."""
    with _shown(f"Writing {path.name}") as report:
        yield report


@contextmanager
def _shown(task: str) -> Iterator[ProgressCallback]:
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with _bars() as bars:
        bar = bars.add_task(task, total=None)

        def report(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        yield report


def _bars() -> "Progress":
    """Return a progress bar with elapsed time, and with share, rate and time left if known."""
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Task as Row
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Row) -> Text:
            if task.total is None or task.speed is None:
                return Text("")
            return Text(f"{task.percentage:.0f} %, {task.speed:,.0f}/s")

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        Rate(),
    )
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, *times, console=console(stderr=True), transient=True)
