"""Messages that no command was asked for, through the logger ``gpuviz``."""

import logging
import sys
from typing import TextIO

from gpuviz.terminal import printable, write_line

_LOGGER = logging.getLogger("gpuviz")


def log(level: int, text: str, *, stream: TextIO | None = None) -> None:
    """Log a message; if the program has not configured logging, write it to a stream.

    Args:
        level: One of ``logging``; by default, warnings and errors are shown.
        text: A sentence.
        stream: ``sys.stderr`` if None.
    """
    if not _LOGGER.isEnabledFor(level):
        return
    if _LOGGER.hasHandlers():
        _LOGGER.log(level, "%s", printable(text), stacklevel=2)
    else:
        write_line(stream or sys.stderr, f"gpuviz: {text}")
