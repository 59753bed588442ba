"""What a rule finds, as the documentation lists it, and the least that it has to save."""

from dataclasses import dataclass

# Of the peak or of the time without warm-up; what saves less is not shown unless asked for.
LEAST_SHARE = 0.01
LEAST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in a few words, in Markdown.

    Attributes:
        name: Such as ``R45``.
        finding: What it finds.
        trigger: How it is found, and what its saving assumes.
        change: What to change in the program.
        is_trade: Whether the change always costs time to save memory, or memory to save time.
    """

    name: str
    finding: str
    trigger: str
    change: str
    is_trade: bool = False
