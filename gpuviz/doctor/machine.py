"""Paths and variables that the checks read."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The paths and variables that the checks read; tests use substitutes.

    Attributes:
        root: The folder that holds ``proc``, ``dev``, ``etc`` and ``usr``.
        prefix: The Python environment.
        home: The user's home.
        environment: The environment variables.
        is_admin: Whether this process has administrator rights.
    """

    root: Path = Path("/")
    prefix: Path = field(default_factory=lambda: Path(sys.prefix))
    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    is_admin: bool = field(default_factory=lambda: os.geteuid() == 0)

    def text(self, path: str) -> str:
        """Return the text of a file such as ``proc/driver/nvidia/params``; empty if unreadable."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
