"""What shows a finding: lines of the program and rows of tables."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the program and its share of a finding.

    Attributes:
        site: ``function (file:line)``.
        source: The text of the line; empty if unknown.
        amount: Its share as text, with the unit.
        stack: An id of ``stacks``; 0 if unknown.
    """

    site: str
    source: str
    amount: str
    stack: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows of a table that show a finding.

    Attributes:
        table: The name of a table or derived table of the recording.
        rows: Row numbers, ascending.
        window: Begin and end of the time that shows them, in ns since the recording's start.
    """

    table: str
    rows: tuple[int, ...]
    window: tuple[int, int]
