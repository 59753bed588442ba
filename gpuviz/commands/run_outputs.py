"""How ``gpuviz run`` prints sentences beside the program's output, and writes its report."""

import subprocess
import sys
from pathlib import Path

from gpuviz.commands.run_options import RunOptions
from gpuviz.terminal import write_line


def write_report(path: Path, options: RunOptions) -> None:
    """Write the report of a recording in a process of its own.

    This one is ending, and holds the program's memory.
    """
    command = [sys.executable, "-P", "-m", "gpuviz", "report", str(path)]
    force = ["--force"] if options.force else []
    stdout = None if options.quiet else stderr()
    subprocess.run(  # noqa: S603 - our own command
        [*command, "-o", options.report, *force],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if stdout is None else stdout,
        stderr=subprocess.DEVNULL if stderr() is None else None,
        check=False,
    )


def stderr() -> int | None:
    """Return the file descriptor of the original stderr; None if it is closed."""
    if sys.__stderr__ is None or sys.__stderr__.closed:
        return None
    return sys.__stderr__.fileno()


def say(sentence: str) -> None:
    """Print a sentence on the original stderr."""
    write_line(sys.__stderr__, f"gpuviz: {sentence}")


def shown(path: Path) -> Path:
    """Return a path as it is shown: relative to the current folder if it is in there."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path
