"""Paths and variables that the checks read."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The places of a machine that tell of it; others than the real ones in tests.

    Attributes:
        root: The folder that holds ``proc``, ``dev``, ``etc`` and ``usr``.
        prefix: The Python environment.
        home: The user's home.
        environment: The environment variables.
        is_admin: Whether this process may do everything.
    """

    root: Path = Path("/")
    prefix: Path = field(default_factory=lambda: Path(sys.prefix))
    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    is_admin: bool = field(default_factory=lambda: os.geteuid() == 0)

    def text(self, path: str) -> str:
        """Return what is in a file such as ``proc/driver/nvidia/params``; empty if unreadable."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
