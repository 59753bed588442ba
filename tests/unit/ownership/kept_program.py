"""A program that keeps GPU memory alive, and what `gpuviz.holders` says of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# A size that no other test uses.
SIZE = (4 << 20) + 512


@dataclass
class Program:
    """A program with what holds its memory."""

    keep: Callable[[Any], Any]
    kind: str
    path: str
