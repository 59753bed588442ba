"""A conclusion in a list, with its sentences and the place that it leads to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.conclusions.wording import sentences, short_saving

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding

# Conclusions above the charts, and those that a list shows without a click.
FIRST, AT_ONCE = 3, 5


@dataclass(frozen=True, slots=True)
class Item:
    """What a page shows of a conclusion.

    Attributes:
        number: Its number in the list.
        said: The conclusion.
        tab: The part of the page that shows it.
        rows: The rows of a table there, by name.
        arrow: The rows of ``activities`` that an arrow of the timeline joins; None if none.
    """

    number: int
    said: "Finding"
    tab: str = ""
    rows: tuple[str, ...] = ()
    arrow: tuple[int, int] | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What explains it."""
        return sentences(self.said)

    @property
    def saving(self) -> str:
        """What a change saves, in a word or two; empty if unknown."""
        return short_saving(self.said)
