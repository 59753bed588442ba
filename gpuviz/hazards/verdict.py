"""What a recording shows about what it was asked to look for."""

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuviz.analysis.default_stream import default_stream_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.described import described
from gpuviz.hazards.hazard import Hazard
from gpuviz.hazards.known import known_hazards
from gpuviz.hazards.one_change import of_one_change
from gpuviz.hazards.text import what
from gpuviz.messages import log
from gpuviz.quantities import format_count, format_counted

# Exit codes of `gpuviz run --fail`: what was looked for was found, or cannot be judged.
FOUND = 3
NO_VERDICT = 4
_NO_ACTIVITIES = "No kernels and copies were recorded."
_EVENTS_MISSING = "Events were dropped."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recording shows about what it was asked to look for.

    Attributes:
        found: A sentence on what was found, for each kind of problem.
        unknown: A sentence on what could not be judged, and why.
        absent: A sentence on what was looked for and not found.
        is_harmful: Whether a hazard is certain or probable, or forbidden work was found.
        hazards: The number of hazards.
        suggestion: The fix of the first hazard as lines of a change, as far as they are known.
    """

    found: tuple[str, ...]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]
    is_harmful: bool
    hazards: int = 0
    suggestion: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on everything that was looked for."""
        return tuple(
            f"{each[0].upper()}{each[1:].rstrip('.')}."
            for each in (*self.found, *self.unknown, *self.absent)
        )

    @property
    def exit_code(self) -> int:
        """The exit code of ``gpuviz run --fail`` for a program that succeeds."""
        if self.is_harmful:
            return FOUND
        return NO_VERDICT if self.unknown else 0

    def announce(self) -> None:
        """Print what was found, and what could not be judged, to the standard error stream."""
        for sentence in (*self.found, *self.unknown):
            log(logging.WARNING, sentence, stream=sys.__stderr__)


def verdict(recording: RecordingData) -> Verdict:
    """Return what was found of what the recorder was asked to look for."""
    parts = []
    if recording.manifest.hazards:
        parts.append(_of_hazards(recording))
    if recording.manifest.forbid_default_stream:
        parts.append(_of_default_stream(recording))
    return joined(parts)


def joined(parts: Iterable[Verdict]) -> Verdict:
    """Return several verdicts as one."""
    parts = tuple(parts)
    found, unknown, absent = (
        tuple(sentence for part in parts for sentence in getattr(part, name))
        for name in ("found", "unknown", "absent")
    )
    is_harmful = any(part.is_harmful for part in parts)
    hazards = sum(part.hazards for part in parts)
    changes = tuple(line for part in parts for line in part.suggestion)
    return Verdict(found, unknown, absent, is_harmful, hazards, changes)


def without_verdict(reason: str) -> Verdict:
    """Return the verdict on what could not be judged."""
    return Verdict((), (f"no verdict: {reason}",), (), is_harmful=False)


def _of_hazards(recording: RecordingData) -> Verdict:
    table = known_hazards(recording)
    if isinstance(table, str):
        return without_verdict(f"hazards are unknown. {table}")
    found = described(recording, table)
    if not found:
        return Verdict((), (), ("no hazards between streams",), is_harmful=False)
    is_harmful = any(each.tier != "latent" for each in found)
    change = of_one_change(recording, found)[0].suggestion
    return Verdict((summary(found),), (), (), is_harmful, len(found), change)


def summary(found: Sequence[Hazard]) -> str:
    """Return how many hazards there are, and the first, in a few sentences."""
    tiers = [each.tier for each in found]
    counts = ", ".join(
        f"{format_count(tiers.count(tier))} {tier}"
        for tier in ("certain", "probable", "latent")
        if tier in tiers
    )
    first = found[0]
    counted = format_counted(len(found), "hazard")
    return (
        f"{counted} between streams: {counts}. The first: {what(first)}, by "
        f"{first.first.short_name} in {first.first.site} and {first.second.short_name} in "
        f"{first.second.site}."
    )


def _of_default_stream(recording: RecordingData) -> Verdict:
    if not recording.tables["activities"].num_rows:
        return without_verdict(f"work on the default stream is unknown. {_NO_ACTIVITIES}")
    rows = default_stream_rows(recording)
    if rows:
        count = format_counted(sum(row["count"] for row in rows), "operation")
        lines = format_counted(len({row["site"] for row in rows}), "line")
        sentence = f"{count} on the default stream, from {lines}. The first: {rows[0]['site']}."
        return Verdict((sentence,), (), (), is_harmful=True)
    if recording.dropped:
        return without_verdict(f"work on the default stream is unknown. {_EVENTS_MISSING}")
    return Verdict((), (), ("nothing on the default stream",), is_harmful=False)
