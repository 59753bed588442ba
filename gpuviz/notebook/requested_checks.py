"""Facts about what a cell was asked to look for: hazards, work on the default stream."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuviz.conclusions import numbers
from gpuviz.hazards.hazard import Hazard
from gpuviz.hazards.known import unknown
from gpuviz.hazards.text import title
from gpuviz.notebook.facts import CodeLine, Fact
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST = 4


def hazards_fact(recording: "Recording") -> Fact:
    """Return the hazards of a cell, or why they are unknown."""
    if reason := unknown(recording):
        return Fact(numbers.not_recorded("Hazards", reason))
    found = recording.hazards()
    if not found:
        return Fact(numbers.hazards(0))
    lines = [line for each in found[:_MOST] for line in _lines(each)]
    if len(found) > _MOST:
        lines.append(CodeLine(f"and {format_counted(len(found) - _MOST, 'more hazard')}", "", ""))
    return Fact(numbers.hazards(len(found)), tuple(lines))


def default_stream_fact(recording: "Recording") -> Fact:
    """Return the work of a cell on the legacy default stream."""
    rows = recording.default_stream_work().to_pylist()
    lines = [
        CodeLine(
            f"{row['kind']}, {format_counted(row['count'], 'time')}", row["source"], row["site"]
        )
        for row in rows[:_MOST]
    ]
    if len(rows) > _MOST:
        lines.append(CodeLine(f"and {format_counted(len(rows) - _MOST, 'more line')}", "", ""))
    count = sum(row["count"] for row in rows)
    return Fact(numbers.default_stream_work(count), tuple(lines))


def _lines(hazard: Hazard) -> Iterator[CodeLine]:
    yield CodeLine(title(hazard), "", "")
    for each in (hazard.first, hazard.second):
        yield CodeLine(f"{each.name} {each.mode} it on {each.stream}:", each.source, each.site)
    yield CodeLine(hazard.fix, "", "", is_whole=True)
