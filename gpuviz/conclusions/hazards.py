"""Each hazard of a recording as something that gpuviz says."""

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.rules.r40_unordered_operations import CERTAINTIES, evidence
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.described import described
from gpuviz.hazards.hazard import Hazard
from gpuviz.hazards.known import affordable_hazards
from gpuviz.hazards.text import done, is_of_graph, title

# Arrows between the operations of hazards in a timeline.
_MOST_ARROWS = 200


def hazard_conclusions(recording: RecordingData, device: int) -> list[Finding]:
    """Return the hazards of a device; those that showed in this run are alarms.

    A very long recording has none here; ``gpuviz hazards`` judges it.
    """
    return [_conclusion(recording, each) for each in _of_device(recording, device)]


def arrows(recording: RecordingData, device: int) -> list[tuple[int, int] | None]:
    """Return the rows of ``activities`` that a timeline joins for each of these hazards."""
    rows = [(each.first.activity, each.second.activity) for each in _of_device(recording, device)]
    return [
        pair if place < _MOST_ARROWS and min(pair) >= 0 else None for place, pair in enumerate(rows)
    ]


def _of_device(recording: RecordingData, device: int) -> tuple[Hazard, ...]:
    found = affordable_hazards(recording)
    if isinstance(found, str):
        return ()
    return described(recording, rows_at(found, (plain(found["device"]) == device).nonzero()[0]))


def _conclusion(recording: RecordingData, hazard: Hazard) -> Finding:
    cause = "Nothing orders these operations"
    if is_of_graph(hazard):
        cause = "The graph uses memory that was freed"
    return Finding(
        rule="R40",
        title=f"{title(hazard)}.",
        reason=f"{cause}, so the numbers may come out wrong.",
        change=hazard.fix,
        certainty=CERTAINTIES.get(hazard.tier, "possible"),
        device=hazard.device,
        lines=tuple(
            Line(each.site, each.source, done(hazard, each))
            for each in (hazard.first, hazard.second)
        ),
        evidence=evidence(recording, hazard),
        kind="hazard" if hazard.showed else "fact",
    )
