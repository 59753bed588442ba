"""Result of one check."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of a machine.

    Attributes:
        topic: Its subject, in a word or two.
        level: ``problem`` if recording is impossible, ``warning`` if it is limited.
        found: What was found.
        meaning: The consequence for a recording; empty if obvious.
        remedy: The solution; empty if there is none, or none is needed.
    """

    topic: str
    level: Level
    found: str
    meaning: str = ""
    remedy: str = ""
