"""Conclusions as HTML: the list of a page, its first lines, and the list of a notebook."""

from typing import TYPE_CHECKING

from gpuviz.conclusions.item import AT_ONCE, FIRST, Item
from gpuviz.conclusions.wording import nothing_found
from gpuviz.present.markup import part
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from gpuviz.advice.finding import Finding

MOST_IN_NOTEBOOK = 3


def conclusions_list(
    shown: "Sequence[Item]", nothing: str, notes: "Iterable[str]" = ()
) -> "Markup":
    """Return the list of a page, of which the first few are visible at once.

    Args:
        shown: The conclusions.
        nothing: That nothing was found; empty if something was.
        notes: Sentences on what could not be looked at.
    """
    first, rest = shown[:AT_ONCE], shown[AT_ONCE:]
    more = format_counted(len(rest), "more finding")
    return part("findings", nothing, first, rest, more, tuple(notes))


def first_conclusions(shown: "Sequence[Item]") -> "Markup":
    """Return the first few, each in one line."""
    return part("first_findings", shown[:FIRST], nothing_of(shown))


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
