"""R40: two operations use the same memory, and nothing orders them."""

from collections.abc import Iterator

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Certainty, Finding
from gpuviz.advice.rule import Rule
from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.described import described
from gpuviz.hazards.hazard import Hazard
from gpuviz.hazards.known import affordable_hazards
from gpuviz.hazards.one_change import HazardsOfOneChange, of_one_change
from gpuviz.hazards.text import done, is_of_graph, what
from gpuviz.quantities import format_bytes, format_count, format_counted

RULES = (
    Rule(
        "R40",
        "two operations use the same memory, and nothing orders them",
        "a [hazard](../explanation/hazards.md) that is certain or probable, or several that one "
        "wait would order, of a recording that was finished, of at most a million activities and "
        "CUDA calls unless it was made with `hazards=True`",
        "as the finding says: an event and a wait, `record_stream`, or the array kept longer",
    ),
)

CERTAINTIES: dict[str, Certainty] = {"certain": "certain", "probable": "likely"}


def find(recording: RecordingData) -> Iterator[Finding]:
    """Find hazards, whose results may be wrong; see docs/explanation/hazards.md.

    Trigger: a hazard of `gpuviz.Recording.hazards` that is certain or probable. A latent one does
    no harm yet. A recording of more than a million activities and CUDA calls is not judged here.

    One missing wait makes several hazards: those of two streams that one event after the last of
    the first operations, awaited before the earliest of the second ones, would order. So does an
    event that was recorded or awaited in the wrong place, and so do waits that are missing in the
    same lines for several streams.

    Saving: none; the program computes what it should.
    """
    table = affordable_hazards(recording)
    if isinstance(table, str):
        return
    found = [each for each in described(recording, table) if each.tier in CERTAINTIES]
    for hazards in of_one_change(recording, found):
        yield _finding(recording, hazards)


def _finding(recording: RecordingData, hazards: HazardsOfOneChange) -> Finding:
    hazard = hazards.hazards[0]
    first, second = hazard.first, hazard.second
    others = len(hazards.hazards) - 1
    pairs = "these operations"
    if hazard.count > 1:
        pairs = f"{format_count(hazard.count)} pairs of these operations"
    seen = (
        "They overlapped or ran in the opposite order in this run."
        if hazard.showed
        else "They ran in order in this run, and may not in the next."
    )
    more = ""
    if others:
        conflicts = format_counted(others, "more conflict")
        more = f" The same change also orders {conflicts}."
        if hazard.misplaced:
            more = f" The same event should order {conflicts}."
    reason = f"Nothing orders {pairs}. {seen}{more}"
    if is_of_graph(hazard):
        reason = "The graph uses memory that was freed, and another array has had it since."
    return Finding(
        rule="R40",
        title=(
            f"The numbers may be wrong: {what(hazard)}, by `{first.short_name}` and "
            f"`{second.short_name}` ({format_bytes(hazard.bytes)})."
        ),
        reason=reason,
        change=hazards.fix,
        certainty=CERTAINTIES[hazard.tier],
        device=hazard.device,
        lines=tuple(
            Line(each.site, each.source, done(hazard, each), each.stack) for each in (first, second)
        ),
        evidence=evidence(recording, hazard),
        kind="hazard",
    )


def evidence(recording: RecordingData, hazard: Hazard) -> Evidence | None:
    """Return both operations, from the first begin to the last end."""
    rows = sorted({each.activity for each in (hazard.first, hazard.second)} - {-1})
    if not rows:
        return None
    activities = recording.tables["activities"]
    begins, ends = ([activities[name][row].as_py() for row in rows] for name in ("time", "end"))
    return Evidence("activities", tuple(rows), (min(begins), max(ends)))
