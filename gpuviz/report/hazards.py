"""Unordered operations on the same memory, as a page tells them."""

from typing import TYPE_CHECKING

from gpuviz.advice.finding import Line
from gpuviz.hazards.text import title
from gpuviz.report.markup import panel
from gpuviz.report.notices import Notice, notices_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuviz.hazards.hazard import Hazard
    from gpuviz.recording.recording import Recording

# Activities and CUDA calls; judging more would take a noticeable part of writing a report.
_MOST_JUDGED = 1_000_000


def hazard_notices(recording: "Recording", device: int) -> list[Notice]:
    """Return the hazards of a device; those that showed in this run are alarms.

    A very long recording has none here; ``gpuviz hazards`` judges it.
    """
    tables = recording.tables
    if tables["activities"].num_rows + tables["api_calls"].num_rows > _MOST_JUDGED:
        return []
    return [_notice(recording, each) for each in recording.hazards() if each.device == device]


def hazards_section(found: "Sequence[Notice]") -> str:
    """Return the section about the hazards of a device; empty without any."""
    body = notices_list(list(found), ())
    return panel("Hazards", body, slug="hazards", count=len(found)) if found else ""


def _notice(recording: "Recording", hazard: "Hazard") -> Notice:
    lines = (
        Line(each.site, each.source, f"{each.name} {each.mode} it on {each.stream}")
        for each in (hazard.first, hazard.second)
    )
    return Notice(
        f"{title(hazard)}.",
        f"Nothing orders these operations, so the numbers may come out wrong.\n{hazard.fix}",
        is_alarm=hazard.showed,
        lines=tuple(lines),
        window=_window(recording, hazard),
    )


def _window(recording: "Recording", hazard: "Hazard") -> tuple[int, int] | None:
    """Return when both operations ran, from the first begin to the last end."""
    rows = [row for row in (hazard.first.activity, hazard.second.activity) if row >= 0]
    if not rows:
        return None
    activities = recording.tables["activities"]
    begins, ends = ([activities[name][row].as_py() for row in rows] for name in ("time", "end"))
    return min(begins), max(ends)
