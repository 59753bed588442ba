"""Conclusions and hazards as text of a terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuviz.analysis.processes import device_names
from gpuviz.conclusions.wording import nothing_found, sentences, unknown
from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.hazard import Hazard, HazardOperation
from gpuviz.hazards.known import unknown as unknown_hazards
from gpuviz.hazards.one_change import HazardsOfOneChange, of_one_change
from gpuviz.hazards.text import NOTHING_FOUND, done, place, title
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding


def conclusions_text(recording: RecordingData, found: "Sequence[Finding]", most: int | None) -> str:
    """Return conclusions as text, in their order, and what was not looked at.

    Args:
        recording: The recording.
        found: What gpuviz says about it.
        most: The number that is shown; all if None.
    """
    shown = found[:most]
    nothing = nothing_found(found)
    names = device_names(recording)
    if len(recording.devices) > 1:
        names = {device: f"GPU {device}" for device in recording.devices} | names
    parts = [nothing, ""] if nothing else []
    for number, each in enumerate(shown, 1):
        parts.append(f"{number}. {finding_text(each, names.get(each.device, ''))}\n")
    if len(shown) < len(found):
        rest = format_counted(len(found) - len(shown), "more finding")
        parts.append(f"{rest}: show all with --all")
    return "\n".join([*parts, *unknown(recording)]).rstrip()


def finding_text(finding: "Finding", device: str = "") -> str:
    """Return a finding as text: the title, and indented what it saves, why, and what to change.

    Args:
        finding: The finding.
        device: The name of its device, if there are several.
    """
    source = f" [{finding.rule}, {finding.certainty}]" if finding.rule else ""
    place = [f"on {device}"] if device else []
    lines = (f"{line.amount}: {line.site}" for line in finding.lines)
    return "\n   ".join([f"{finding.title}{source}", *place, *sentences(finding), *lines])


def findings_text(found: "Sequence[Finding]") -> str:
    """Return findings as text, numbered, or that nothing was found."""
    numbered = (f"{number}. {finding_text(each)}" for number, each in enumerate(found, 1))
    return "\n\n".join(numbered) or nothing_found(found)


def hazards_text(recording: RecordingData, found: Sequence[Hazard]) -> str:
    """Return hazards as text, or why there are none."""
    if not found:
        return unknown_hazards(recording) or NOTHING_FOUND
    names = device_names(recording)
    return "\n\n".join(
        "\n".join(_hazards(number, hazards, names.get(hazards.hazards[0].device, "")))
        for number, hazards in enumerate(of_one_change(recording, found), start=1)
    )


def _hazards(number: int, hazards: HazardsOfOneChange, device: str) -> Iterator[str]:
    hazard, *others = hazards.hazards
    yield f"{number}. {title(hazard)}"
    if device:
        yield f"   on {device}"
    yield from _operation("first ", hazard, hazard.first)
    yield from _operation("second", hazard, hazard.second)
    yield f"   allocated in {hazard.allocated}"
    if hazard.freed and hazard.second.mode != "frees":
        yield f"   freed in {hazard.freed}"
    yield f"   fix: {hazards.fix}"
    yield from (f"      {line}" for line in hazards.suggestion)
    if others:
        yield f"   it also orders {format_counted(len(others), 'more conflict')}:"
    is_of_one_pair = len({(each.first.where, each.second.where) for each in hazards.hazards}) == 1
    for each in others:
        first, second = (
            operation.site if is_of_one_pair else f"{operation.site} on {operation.where}"
            for operation in (each.first, each.second)
        )
        yield f"      {each.kind}, {each.tier}: {first} and {second}"


def _operation(rank: str, hazard: Hazard, operation: HazardOperation) -> Iterator[str]:
    yield f"   {rank} {done(hazard, operation)}, {place(hazard, operation)}"
    if operation.source:
        yield f"          {operation.source}"
