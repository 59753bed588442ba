"""R40: two operations use the same memory, and nothing orders them."""

from typing import TYPE_CHECKING

from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.advice.rule import Rule
from gpuviz.hazards.described import described
from gpuviz.hazards.fix import fix
from gpuviz.hazards.known import affordable_hazards
from gpuviz.hazards.text import done, is_of_graph, what
from gpuviz.quantities import format_bytes, format_count, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuviz.advice.finding import Certainty
    from gpuviz.data.recording_data import RecordingData
    from gpuviz.hazards.hazard import Hazard, HazardOperation

RULES = (
    Rule(
        "R40",
        "two operations use the same memory, and nothing orders them",
        "a [hazard](hazards.md) that is certain or probable, or several that one wait would order,"
        " of a recording that was finished, of at most a million activities and CUDA calls unless "
        "it was made with `hazards=True`",
        "as the finding says: an event and a wait, `record_stream`, or the array kept longer",
    ),
)

CERTAINTIES: "dict[str, Certainty]" = {"certain": "certain", "probable": "likely"}
# An event and a wait order them; memory that is freed or reused needs other changes.
_ORDERED = {"RAW", "WAR", "WAW"}


def find(recording: "RecordingData") -> "Iterator[Finding]":
    """Find hazards, whose results may be wrong; see docs/hazards.md.

    Trigger: a hazard of `gpuviz.Recording.hazards` that is certain or probable. A latent one does
    no harm yet. A recording of more than a million activities and CUDA calls is not judged here.

    One missing wait makes several hazards: those of two streams that one event after the last of
    the first operations, awaited before the earliest of the second ones, would order.

    Saving: none; the program computes what it should.
    """
    table = affordable_hazards(recording)
    if isinstance(table, str):
        return
    found = [each for each in described(recording, table) if each.tier in CERTAINTIES]
    for hazards in _of_one_wait(recording, found):
        yield _finding(recording, hazards)


def _of_one_wait(recording: "RecordingData", found: "Sequence[Hazard]") -> "list[_Hazards]":
    """Return the hazards that the same wait would order, in the order of the first of each."""
    groups: list[_Hazards] = []
    for hazard in found:
        alone = _Hazards(
            [hazard], _issued(recording, hazard.first), _issued(recording, hazard.second)
        )
        group = next((each for each in groups if each.can_take(alone)), None)
        if group is None:
            groups.append(alone)
        else:
            group.take(alone)
    return groups


def _issued(
    recording: "RecordingData", operation: "HazardOperation"
) -> "tuple[int, HazardOperation]":
    """Return when an operation was launched, in ns, and the operation; -1 if unknown."""
    if operation.activity < 0:
        return -1, operation
    correlation = recording.tables["activities"]["correlation"][operation.activity].as_py()
    calls = recording.tables["api_calls"]
    row = calls["correlation"].index(correlation).as_py() if correlation else -1
    return (calls["time"][row].as_py() if row >= 0 else -1), operation


class _Hazards:
    """Hazards that one wait would order.

    Attributes:
        hazards: The hazards, the first found first.
        last_first: When the last of the first operations was launched, and the operation.
        first_second: The same for the earliest of the second operations.
    """

    def __init__(
        self,
        hazards: "list[Hazard]",
        last_first: "tuple[int, HazardOperation]",
        first_second: "tuple[int, HazardOperation]",
    ) -> None:
        self.hazards, self.last_first, self.first_second = hazards, last_first, first_second

    @property
    def streams(self) -> tuple[str, str]:
        """The streams of the first and of the second operations."""
        return self.hazards[0].first.where, self.hazards[0].second.where

    def can_take(self, other: "_Hazards") -> bool:
        """Return whether one wait would also order other hazards."""
        kinds = {each.kind for each in (*self.hazards, *other.hazards)}
        lasts, firsts = (
            (getattr(self, name)[0], getattr(other, name)[0])
            for name in ("last_first", "first_second")
        )
        is_known = kinds <= _ORDERED and min(*lasts, *firsts) >= 0
        same = self.streams == other.streams
        return is_known and same and max(lasts) < min(firsts)

    def take(self, other: "_Hazards") -> None:
        """Add hazards that the same wait orders."""
        self.hazards += other.hazards
        self.last_first = max(self.last_first, other.last_first, key=lambda each: each[0])
        self.first_second = min(self.first_second, other.first_second, key=lambda each: each[0])

    @property
    def fix(self) -> str:
        """What orders all of them."""
        hazard = self.hazards[0]
        if len(self.hazards) == 1:
            return hazard.fix
        return fix(
            hazard.kind, self.last_first[1], self.first_second[1], "", "", device=hazard.device
        )


def _finding(recording: "RecordingData", hazards: _Hazards) -> Finding:
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
        more = f" The same wait is missing for {conflicts} of these streams."
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


def evidence(recording: "RecordingData", hazard: "Hazard") -> Evidence | None:
    """Return both operations, from the first begin to the last end."""
    rows = sorted({each.activity for each in (hazard.first, hazard.second)} - {-1})
    if not rows:
        return None
    activities = recording.tables["activities"]
    begins, ends = ([activities[name][row].as_py() for row in rows] for name in ("time", "end"))
    return Evidence("activities", tuple(rows), (min(begins), max(ends)))
