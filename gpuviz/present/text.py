"""Conclusions as text of a terminal."""

from typing import TYPE_CHECKING

from gpuviz.conclusions.wording import nothing_found, sentences, unknown
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuviz.advice.finding import Finding
    from gpuviz.data.recording_data import RecordingData


def conclusions_text(
    recording: "RecordingData", found: "Sequence[Finding]", most: int | None
) -> str:
    """Return conclusions as text, in their order, and what was not looked at.

    Args:
        recording: The recording.
        found: What gpuviz says about it.
        most: The number that is shown; all if None.
    """
    shown = found[:most]
    nothing = nothing_found(found)
    parts = [nothing, ""] if nothing else []
    parts += [text for number, each in enumerate(shown, 1) for text in _lines(number, each)]
    if len(shown) < len(found):
        parts.append(f"{format_counted(len(found) - len(shown), 'more finding')}: --all")
    return "\n".join([*parts, *unknown(recording)]).rstrip()


def _lines(number: int, finding: "Finding") -> "Iterator[str]":
    source = f" [{finding.rule}, {finding.certainty}]" if finding.rule else ""
    yield f"{number}. {finding.title}{source}"
    for sentence in sentences(finding):
        yield f"   {sentence}"
    for line in finding.lines:
        yield f"   {line.amount}: {line.site}"
    yield ""
