"""Conclusions as HTML: the list of a page, its first lines, and the list of a notebook."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from gpuviz.conclusions.links import rows_of
from gpuviz.conclusions.wording import nothing_found, sentences, short_saving
from gpuviz.present.markup import part
from gpuviz.present.text import MOST_SHOWN
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from gpuviz.advice.finding import Finding
    from gpuviz.data.recording_data import RecordingData

MOST_IN_NOTEBOOK = 3
_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Item:
    """What a template shows of a conclusion.

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


def items_of(
    recording: "RecordingData",
    found: "Sequence[Finding]",
    arrows: "Sequence[tuple[int, int] | None]" = (),
) -> list[Item]:
    """Return conclusions for a page, with the places that they lead to."""
    shown = []
    for number, (each, arrow) in enumerate(zip_longest(found, arrows), 1):
        tab, rows = ("hazards", ()) if arrow else rows_of(recording, each)
        shown.append(Item(number, each, tab if rows or arrow else "", rows, arrow))
    return shown


def conclusions_list(
    shown: "Sequence[Item]", nothing: str, notes: "Iterable[str]" = ()
) -> "Markup":
    """Return the list of a page, of which the first few are visible at once.

    Args:
        shown: The conclusions.
        nothing: That nothing was found; empty if something was.
        notes: Sentences on what could not be looked at.
    """
    first, rest = shown[:MOST_SHOWN], shown[MOST_SHOWN:]
    more = format_counted(len(rest), "more finding")
    return part("findings", nothing, first, rest, more, tuple(notes))


def first_conclusions(shown: "Sequence[Item]") -> "Markup":
    """Return the first few, each in one line, and how many there are."""
    return part("first_findings", shown[:_AT_ONCE], len(shown), nothing_of(shown))


def notebook_list(
    found: "Sequence[Finding]", heading: str = "", notes: "Iterable[str]" = ()
) -> "Markup":
    """Return conclusions for a notebook, a line each that opens to the reason.

    Args:
        found: The conclusions.
        heading: What they are about.
        notes: Sentences on what could not be looked at.
    """
    shown = [Item(number, each) for number, each in enumerate(found, 1)]
    first, rest = shown[:MOST_IN_NOTEBOOK], shown[MOST_IN_NOTEBOOK:]
    more = format_counted(len(rest), "more finding")
    return part("found", heading, nothing_of(shown), first, rest, more, tuple(notes))


def nothing_of(shown: "Sequence[Item]") -> str:
    """Return that nothing was found, if it was not; else empty."""
    return nothing_found(each.said for each in shown)
