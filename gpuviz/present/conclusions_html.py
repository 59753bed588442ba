"""Conclusions as HTML for a notebook."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpuviz.conclusions.item import Item
from gpuviz.conclusions.wording import nothing_found
from gpuviz.present.markup import part
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpuviz.advice.finding import Finding

MOST_IN_NOTEBOOK = 3


def notebook_list(
    found: "Sequence[Finding]",
    heading: str = "",
    notes: Iterable[str] = (),
    *,
    has_charts: bool = False,
) -> "Markup":
    """Return conclusions for a notebook, a line each that opens to the reason.

    Args:
        found: The conclusions.
        heading: What they are about.
        notes: Sentences on what could not be looked at.
        has_charts: Whether there are charts beside it, which buttons can lead to.
    """
    shown = [Item(number, each) for number, each in enumerate(found, 1)]
    first, rest = shown[:MOST_IN_NOTEBOOK], shown[MOST_IN_NOTEBOOK:]
    more = format_counted(len(rest), "more finding")
    return part("found", heading, nothing_found(found), first, rest, more, tuple(notes), has_charts)
