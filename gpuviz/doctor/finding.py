"""Result of one check."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about a machine.

    Attributes:
        topic: What it is about, in a word or two.
        level: ``problem`` if recording is impossible, ``warning`` if something is limited.
        found: What was found.
        meaning: What that means for a recording; empty where that is plain.
        remedy: The way out; empty if there is none, or no need.
    """

    topic: str
    level: Level
    found: str
    meaning: str = ""
    remedy: str = ""
