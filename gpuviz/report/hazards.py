"""Unordered operations on the same memory, as a page tells them."""

from html import escape
from typing import TYPE_CHECKING

from gpuviz.advice.finding import Line
from gpuviz.data.columns import plain, rows_at
from gpuviz.hazards.described import described
from gpuviz.hazards.known import affordable_hazards, unknown
from gpuviz.hazards.text import NOTHING_FOUND, done, is_of_graph, title
from gpuviz.report.markup import panel
from gpuviz.report.notices import Notice, notices_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuviz.hazards.hazard import Hazard
    from gpuviz.recording import Recording


_MOST_ARROWS = 200


def hazard_notices(recording: "Recording", device: int) -> list[Notice]:
    """Return the hazards of a device; those that showed in this run are alarms.

    A very long recording has none here; ``gpuviz hazards`` judges it.
    """
    found = affordable_hazards(recording)
    if isinstance(found, str):
        return []
    of_device = rows_at(found, (plain(found["device"]) == device).nonzero()[0])
    return [
        _notice(recording, each, has_arrow=place < _MOST_ARROWS)
        for place, each in enumerate(described(recording, of_device))
    ]


def hazards_section(recording: "Recording", found: "Sequence[Notice]") -> str:
    """Return the section about the hazards of a device.

    Without any it is empty, unless they were asked for when the recording was made.
    """
    if found:
        return panel("Hazards", notices_list(list(found), ()), slug="hazards", count=len(found))
    if not recording.manifest.hazards:
        return ""
    text = escape(unknown(recording) or NOTHING_FOUND)
    return panel("Hazards", f'<p class="gpuviz-findings__none">{text}</p>', slug="hazards")


def _notice(recording: "Recording", hazard: "Hazard", *, has_arrow: bool) -> Notice:
    rows = (hazard.first.activity, hazard.second.activity)
    lines = (
        Line(each.site, each.source, done(hazard, each)) for each in (hazard.first, hazard.second)
    )
    cause = "Nothing orders these operations"
    if is_of_graph(hazard):
        cause = "The graph uses memory that was freed"
    return Notice(
        f"{title(hazard)}.",
        f"{cause}, so the numbers may come out wrong.\n{hazard.fix}",
        is_alarm=hazard.showed,
        lines=tuple(lines),
        window=_window(recording, hazard),
        unordered=rows if has_arrow and min(rows) >= 0 else None,
    )


def _window(recording: "Recording", hazard: "Hazard") -> tuple[int, int] | None:
    """Return when both operations ran, from the first begin to the last end."""
    rows = [row for row in (hazard.first.activity, hazard.second.activity) if row >= 0]
    if not rows:
        return None
    activities = recording.tables["activities"]
    begins, ends = ([activities[name][row].as_py() for row in rows] for name in ("time", "end"))
    return min(begins), max(ends)
