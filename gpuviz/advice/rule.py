"""What a rule finds, as the documentation lists it."""

from dataclasses import dataclass


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
