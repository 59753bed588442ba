"""R40: two operations use the same memory, and nothing orders them."""

from typing import TYPE_CHECKING

from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.hazards.described import described
from gpuviz.hazards.known import affordable_hazards
from gpuviz.hazards.text import is_of_graph, what
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.finding import Certainty
    from gpuviz.data.recording_data import RecordingData
    from gpuviz.hazards.hazard import Hazard

_CERTAINTIES: "dict[str, Certainty]" = {"certain": "certain", "probable": "likely"}


def find(recording: "RecordingData") -> "Iterator[Finding]":
    """Find hazards, whose results may be wrong; see docs/hazards.md.

    Trigger: a hazard of `gpuviz.Recording.hazards` that is certain or probable. A latent one does
    no harm yet. A recording of more than a million activities and CUDA calls is not judged here.

    Saving: none; the program computes what it should.
    """
    table = affordable_hazards(recording)
    if isinstance(table, str):
        return
    for hazard in described(recording, table):
        if hazard.tier in _CERTAINTIES:
            yield _finding(recording, hazard)


def _finding(recording: "RecordingData", hazard: "Hazard") -> Finding:
    first, second = hazard.first, hazard.second
    pairs = "these operations"
    if hazard.count > 1:
        pairs = f"{format_count(hazard.count)} pairs of these operations"
    seen = (
        "They overlapped or ran in the opposite order in this run."
        if hazard.showed
        else "They ran in order in this run, and may not in the next."
    )
    reason = f"Nothing orders {pairs}. {seen}"
    if is_of_graph(hazard):
        reason = "The graph uses memory that was freed, and another array has had it since."
    return Finding(
        rule="R40",
        title=(
            f"The numbers may be wrong: {what(hazard)}, by `{first.short_name}` and "
            f"`{second.short_name}` ({format_bytes(hazard.bytes)})."
        ),
        reason=reason,
        change=hazard.fix,
        certainty=_CERTAINTIES[hazard.tier],
        device=hazard.device,
        lines=tuple(
            Line(each.site, each.source, f"{each.name} {each.mode} it on {each.stream}", each.stack)
            for each in (first, second)
        ),
        evidence=_evidence(recording, hazard),
    )


def _evidence(recording: "RecordingData", hazard: "Hazard") -> Evidence | None:
    """Return both operations, from the first begin to the last end."""
    rows = sorted({each.activity for each in (hazard.first, hazard.second)} - {-1})
    if not rows:
        return None
    activities = recording.tables["activities"]
    begins, ends = ([activities[name][row].as_py() for row in rows] for name in ("time", "end"))
    return Evidence("activities", tuple(rows), (min(begins), max(ends)))
